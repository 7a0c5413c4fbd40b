"""Thread block clusters and grids: mapa, getctarank, griddepcontrol, clusterlaunchcontrol (PTX ISA 9.7.9 and 9.7.13)."""
