"""The steps of a schedule, a file each: what it takes, what it refuses, and what it makes of the state."""

from ptxlab.schedule.steps.blocks import blocks as blocks
from ptxlab.schedule.steps.cluster import cluster as cluster
from ptxlab.schedule.steps.evict_first import evict_first as evict_first
from ptxlab.schedule.steps.evict_last import evict_last as evict_last
from ptxlab.schedule.steps.multicast import multicast as multicast
from ptxlab.schedule.steps.online import online as online
from ptxlab.schedule.steps.pair import pair as pair
from ptxlab.schedule.steps.persistent import persistent as persistent
from ptxlab.schedule.steps.pipeline import pipeline as pipeline
from ptxlab.schedule.steps.prefetch import prefetch as prefetch
from ptxlab.schedule.steps.raster import raster as raster
from ptxlab.schedule.steps.reorder import reorder as reorder
from ptxlab.schedule.steps.resident import resident as resident
from ptxlab.schedule.steps.specialize import specialize as specialize
from ptxlab.schedule.steps.stage import stage as stage
from ptxlab.schedule.steps.stream_k import stream_k as stream_k
from ptxlab.schedule.steps.tensorize import tensorize as tensorize
from ptxlab.schedule.steps.threads import threads as threads
from ptxlab.schedule.steps.tile import tile as tile
from ptxlab.schedule.steps.unroll import unroll as unroll
from ptxlab.schedule.steps.vectorize import vectorize as vectorize
