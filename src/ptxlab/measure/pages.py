"""The pages that `ptxlab explain` shows for what keeps `ptxlab bench` and `tune` from measuring or drawing."""

PAGES = {
    "damaged-results": "The file that `tune` keeps its results in holds something else, or was damaged.",
    "other-results": (
        "A file holds results of `tune` that were found at another size or on another machine.\n\n"
        "Times compare only where both are the same; a file is kept for each."
    ),
    "no-torch": "torch, which holds the arrays and brings the libraries to compare with, is not there or has no GPU.",
    "missing-package": (
        "A package that is needed here is not installed.\n\n"
        "`pip install 'ptxlab[plots]'` brings the one that draws pictures, "
        "`pip install 'ptxlab[editor]'` that of the language server."
    ),
    "no-roofline": (
        "A kernel that computes nothing, such as a copy, has no place under a roofline.\n\n"
        "`ptxlab bench --plot` draws how fast it moves bytes."
    ),
}
