"""Names of texture classes; textures themselves are left out."""


class _Texture:
    pass


ChannelFormatDescriptor = CUDAarray = ResourceDescriptor = TextureDescriptor = TextureObject = _Texture
