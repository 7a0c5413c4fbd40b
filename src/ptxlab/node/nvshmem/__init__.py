"""What NVSHMEM's device functions need where GPUs of a node are its processing elements (PEs).

`include` has what is compiled in place of NVSHMEM's own files: operations of the emulator for networks and for
collectives. All that device functions need of NVSHMEM's host library, which only runs where there are GPUs, is one
variable of each module, and `state` writes it: who this PE is, and where the symmetric memory of each PE is.
"""
