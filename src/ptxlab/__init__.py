"""The workbench for people who write NVIDIA PTX."""
