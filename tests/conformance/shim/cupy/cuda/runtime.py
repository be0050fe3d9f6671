"""The part of cupy.cuda.runtime that the tests import."""

is_hip = False
cudaChannelFormatKindFloat = cudaResourceTypeArray = cudaAddressModeClamp = 0
cudaFilterModePoint = cudaReadModeElementType = 0
