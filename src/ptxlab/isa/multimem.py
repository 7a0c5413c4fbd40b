"""Operations on multimem addresses, which stand for memory of several devices (PTX ISA 9.7.9)."""
