# ruff: noqa: E501
"""Kernels of public projects that were drawn by a seed: how each is launched, and what it computes, in NumPy.

`tests.equal.strangers` draws, compiles and compares them. Their sources are not part of this repository.
"""

from tests.equal.projects.cuda_samples import SAMPLES
from tests.equal.projects.hecbench import HECBENCH
from tests.equal.projects.leetcuda import LEETCUDA
from tests.equal.projects.llm_c import LLM
from tests.equal.projects.polybench import POLYBENCH
from tests.equal.projects.rodinia import RODINIA
from tests.equal.projects.sgemm_cuda import SGEMM

STRANGERS = [*LLM, *SGEMM, *LEETCUDA, *POLYBENCH, *HECBENCH, *RODINIA, *SAMPLES]

_TEXTURES = "it reads or writes textures or surfaces, which are not arrays"
_REFERENCES = "its file has texture references, which CUDA has no more"
LEFT_OUT = {
    "llm.c attention_forward.cu fp32_to_lowp_kernel": "it is compiled with cuDNN only",
    "LeetCUDA openai-triton/merge-attn-states/cuda_merge_attn_states.cu merge_attn_states_kernel": "NVRTC has no `std::isinf`",
    "HeCBench asta-cuda/main.cu PTTWAC_soa_asta": "blocks wait for others by atomic flags, in an order that has no formula",
    "HeCBench gmm-cuda/gaussian_kernel.cu estep2": "its arrays are in a structure of pointers",
    "HeCBench particles-cuda/particles_kernels.cu calcHashK": "its results are integers",
    "HeCBench quicksort-cuda/QuicksortKernels.cuh gqsort_kernel": "its arguments are records that its program makes",
    "HeCBench word2vec-cuda/cbow.cu device_cbow": "threads update words that others read, in any order",
    "rodinia hybridsort/bucketsort_kernel.cu bucketsort": _REFERENCES,
    "rodinia kmeans/kmeans_cuda_kernel.cu invert_mapping": _REFERENCES,
    "rodinia dwt2d/components.cu c_CopySrcToComponent": "its data are integers",
    "cuda-samples Samples/0_Introduction/simpleAWBarrier/simpleAWBarrier.cu normVecByDotProductAWBarrier": "it needs a cooperative launch",
    "cuda-samples Samples/2_Concepts_and_Techniques/eigenvalues/bisect_kernel_large.cuh bisectKernelLarge": "its arguments are lists of intervals that earlier kernels make",
    "cuda-samples Samples/5_Domain_Specific/Mandelbrot/Mandelbrot_cuda.cu MandelbrotDS1": "it has no array of floats",
    "cuda-samples Samples/5_Domain_Specific/SobolQRNG/sobol_gpu.cu sobolGPU_kernel": "its inputs are integers",
    "cuda-samples Samples/0_Introduction/simpleSurfaceWrite/simpleSurfaceWrite.cu surfaceWriteKernel": _TEXTURES,
    "cuda-samples Samples/0_Introduction/simpleTextureDrv/simpleTexture_kernel.cu transformKernel": _TEXTURES,
    "cuda-samples Samples/4_CUDA_Libraries/lineOfSight/lineOfSight.cu computeAngles_kernel": _TEXTURES,
    "cuda-samples Samples/5_Domain_Specific/NV12toBGRandResize/bgr_resize.cu resizeBGRplanarBatchKernel": _TEXTURES,
    "cuda-samples Samples/5_Domain_Specific/volumeFiltering/volumeFilter_kernel.cu d_filter_surface3d": _TEXTURES,
    "cuda-samples Samples/5_Domain_Specific/volumeFiltering/volumeRender_kernel.cu d_preintegrate": _TEXTURES,
}
"""Kernels that were drawn, too, and why they are not compared."""
