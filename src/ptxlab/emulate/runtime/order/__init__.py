"""What happens before what: vector clocks, shadow memory, proxies, and the races they find."""
