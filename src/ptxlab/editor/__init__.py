"""The language server: PTX in editors that speak the Language Server Protocol.

`names` finds declarations and what refers to them, `instructions` says what opcodes are and may become, `document` has
the positions of a text as editors count them, `answers` has an answer for each of their questions, `server` is the
server, by pygls (`ptxlab[editor]`). A text is read here by its words, not by the parser: while someone types, most of
it is wrong.
"""
