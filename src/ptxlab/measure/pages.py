"""The pages that `ptxlab explain` shows for what keeps `ptxlab bench` from measuring or drawing."""

PAGES = {
    "no-torch": "torch, which holds the arrays and brings the libraries to compare with, is not there or has no GPU.",
    "missing-package": (
        "A package that is needed here is not installed.\n\n"
        "`pip install 'ptxlab[plots]'` brings the one that draws pictures."
    ),
    "no-roofline": (
        "A kernel that computes nothing, such as a copy, has no place under a roofline.\n\n"
        "`ptxlab bench --plot` draws how fast it moves bytes."
    ),
}
