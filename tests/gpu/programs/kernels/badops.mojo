import extensibility
from max.gpu.host import DeviceContext
from std.math import ceildiv
from max.gpu import block_dim, block_idx, thread_idx
from extensibility import InputTensor, ManagedTensorSlice, OutputTensor
from std.utils.index import IndexList


def _paged_lookup_gpu(
    output: ManagedTensorSlice[mut=True, ...],
    src: ManagedTensorSlice[dtype=output.dtype, rank=output.rank, ...],
    idx: ManagedTensorSlice[rank=output.rank, ...],
    ctx: DeviceContext,
) raises:
    comptime BLOCK_SIZE = 256
    var gpu_ctx = ctx
    var n = output.dim_size(0)

    @__parameter
    def paged_lookup_kernel(length_dev: Int32):
        var length = Int(length_dev)
        var tid = block_dim.x * block_idx.x + thread_idx.x
        if tid < length:
            var i = IndexList[output.rank](tid)
            var page = Int(idx.load[1](i))
            output.store[1](i, src.load[1](IndexList[output.rank](page)))

    gpu_ctx.enqueue_function[paged_lookup_kernel](
        Int32(n), grid_dim=ceildiv(n, BLOCK_SIZE), block_dim=BLOCK_SIZE
    )


@extensibility.register("paged_lookup")
struct PagedLookup:
    @staticmethod
    def execute[
        target: StaticString,
    ](
        output: OutputTensor[rank=1, ...],
        src: InputTensor[dtype=output.dtype, rank=output.rank, ...],
        idx: InputTensor[dtype=DType.int64, rank=output.rank, ...],
        ctx: DeviceContext,
    ) raises:
        comptime if target == "cpu":
            for i in range(output.dim_size(0)):
                var k = IndexList[output.rank](i)
                output.store[1](k, src.load[1](IndexList[output.rank](Int(idx.load[1](k)))))
        elif target == "gpu":
            _paged_lookup_gpu(output, src, idx, ctx)
        else:
            raise Error("No known target:", target)
