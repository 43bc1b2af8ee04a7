import extensibility
from extensibility import InputTensor, OutputTensor
from max.gpu.host import DeviceContext
from std.utils.index import IndexList


@extensibility.register("raising_op")
struct RaisingOp:
    @staticmethod
    def execute[
        target: StaticString,
    ](
        output: OutputTensor[rank=1, ...],
        src: InputTensor[dtype=output.dtype, rank=output.rank, ...],
        ctx: DeviceContext,
    ) raises:
        raise Error("raising_op: table size mismatch: expected 64 got ", output.dim_size(0))


@extensibility.register("copying_op")
struct CopyingOp:
    @staticmethod
    def execute[
        target: StaticString,
    ](
        output: OutputTensor[rank=1, ...],
        src: InputTensor[dtype=output.dtype, rank=output.rank, ...],
        ctx: DeviceContext,
    ) raises:
        for i in range(output.dim_size(0)):
            var at = IndexList[output.rank](i)
            output.store[1](at, src.load[1](at))
