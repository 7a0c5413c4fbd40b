"""Models of hardware units that several chapters share: layouts, descriptors, tensor cores, tensor memory, textures.

A unit does not know the chapters whose instructions use it.
"""
