"""Asynchronous operations: cp.async, bulk and tensor copies, mbarriers, wgmma."""
