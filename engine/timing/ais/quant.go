package ais

// Quant names the number format of an operator, as the columns of the data do.
type Quant string

const (
	BF16      Quant = "bfloat16"
	FP8       Quant = "fp8"
	FP8Block  Quant = "fp8_block"
	FP8Static Quant = "fp8_static"
	NVFP4     Quant = "nvfp4"
	Int8Only  Quant = "int8_wo"
	Int4Only  Quant = "int4_wo"
	Smooth    Quant = "sq"
)

// bytes is the size of a weight or cache entry, scales included.
func (q Quant) bytes() float64 {
	switch q {
	case FP8, FP8Block, FP8Static, Int8Only, Smooth:
		return 1
	case NVFP4:
		return 0.5625
	case Int4Only:
		return 0.5
	}
	return 2
}

// known reports whether operators in this format can be modelled.
func (q Quant) known() bool {
	switch q {
	case BF16, FP8, FP8Block, FP8Static, NVFP4, Int8Only, Int4Only, Smooth:
		return true
	}
	return false
}

// Quants are the number formats of a model's operators.
type Quants struct {
	GEMM, MoE Quant
	KVCache   Quant
	FMHA      Quant // of attention over the prompt
	Latent    Quant // of the projections into and out of the latent space; "" is that of other products
}
