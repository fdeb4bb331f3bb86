"""quantspec: the exact bits of block-quantized tensors.

Eight verbs in four inverse pairs (`encode`/`decode`, `quantize`/`dequantize`, `pack`/`unpack`, `to_bytes`/`from_bytes`),
`split`, `encode_scale`/`decode_scale`, the layout operations, and the fused ones (`chain`, `product`, `product_codes`), over a
`Scheme`. The rules cited are those of spec/.
"""

from .blocks import Block as Block
from .chain import Step as Step
from .chain import chain as chain
from .errors import DtypeError as DtypeError
from .errors import EncodingError as EncodingError
from .errors import HostError as HostError
from .errors import LayoutError as LayoutError
from .errors import QuantspecError as QuantspecError
from .errors import ScaleError as ScaleError
from .errors import SchemeError as SchemeError
from .errors import ShapeError as ShapeError
from .errors import UnsupportedError as UnsupportedError
from .layout import byte_count as byte_count
from .layout import from_bytes as from_bytes
from .layout import split as split
from .layout import to_bytes as to_bytes
from .operations import concatenate as concatenate
from .operations import expand as expand
from .operations import flip as flip
from .operations import permute as permute
from .operations import repack as repack
from .operations import requantize as requantize
from .operations import select as select
from .operations import slice_axis as slice_axis
from .operations import take as take
from .operations import transpose as transpose
from .packing import convert as convert
from .packing import pack as pack
from .packing import pack_codes as pack_codes
from .packing import unpack as unpack
from .packing import unpack_words as unpack_words
from .presets import PRESETS as PRESETS
from .presets import Preset as Preset
from .presets import read_presets as read_presets
from .products import product as product
from .products import product_codes as product_codes
from .quantize import dequantize as dequantize
from .quantize import quantize as quantize
from .recipes import CANONICAL as CANONICAL
from .recipes import CANONICAL_CODEC as CANONICAL_CODEC
from .recipes import CANONICAL_CONTAINER as CANONICAL_CONTAINER
from .recipes import CODECS as CODECS
from .recipes import CONTAINERS as CONTAINERS
from .recipes import RECIPES as RECIPES
from .recipes import Codec as Codec
from .recipes import Container as Container
from .recipes import Recipe as Recipe
from .reshape import reshape as reshape
from .scales import SCALES as SCALES
from .scales import ScaleType as ScaleType
from .scales import decode_scale as decode_scale
from .scales import encode_scale as encode_scale
from .scheme import Scheme as Scheme
from .stores import STORES as STORES
from .stores import Store as Store
from .tables import NF4 as NF4
from .tables import TABLES as TABLES
from .tables import Table as Table
from .tensor import Quantized as Quantized
from .tensor import Saturation as Saturation
from .tracing import Trace as Trace
from .tracing import trace as trace
from .values import VALUES as VALUES
from .values import ValueFormat as ValueFormat
from .values import decode as decode
from .values import encode as encode

__version__ = "0.1.0"
from .words import Packed as Packed
from .words import words_shape as words_shape
