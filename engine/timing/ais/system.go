package ais

// System describes a GPU and how GPUs are connected. The tags are the keys of the data's system files.
type System struct {
	Name string `yaml:"-"`
	GPU  struct {
		MemoryBandwidth float64 `yaml:"mem_bw"` // bytes/s
		BandwidthFactor float64 `yaml:"mem_bw_empirical_scaling_factor"`
		ConstantSeconds float64 `yaml:"mem_empirical_constant_latency"`
		MemoryBytes     float64 `yaml:"mem_capacity"`
		BF16Flops       float64 `yaml:"bfloat16_tc_flops"`
		FP8Flops        float64 `yaml:"fp8_tc_flops"`
		INT8Flops       float64 `yaml:"int8_tc_flops"`
		FP4Flops        float64 `yaml:"fp4_tc_flops"`
		SM              int     `yaml:"sm_version"`
	} `yaml:"gpu"`
	Node struct {
		GPUs               int     `yaml:"num_gpus_per_node"`
		GPUsPerRack        int     `yaml:"num_gpus_per_rack"` // 0 if the system has no racks
		InterNodeBandwidth float64 `yaml:"inter_node_bw"`     // bytes/s
		IntraNodeBandwidth float64 `yaml:"intra_node_bw"`
		InterRackBandwidth float64 `yaml:"inter_rack_bw"`
	} `yaml:"node"`
	Misc struct {
		NCCLBytes   map[int]float64 `yaml:"nccl_mem"` // by number of ranks
		OtherBytes  float64         `yaml:"other_mem"`
		NCCLVersion string          `yaml:"nccl_version"`
	} `yaml:"misc"`
}

// memory is the latency in ms of an operator that only moves bytes.
func (s *System) memory(bytes float64) float64 {
	return (bytes/(s.GPU.MemoryBandwidth*s.GPU.BandwidthFactor) + s.GPU.ConstantSeconds) * 1000
}

// flops is the peak rate of matrix products in this format.
func (s *System) flops(q Quant) float64 {
	switch q {
	case FP8, FP8Block, FP8Static:
		return s.GPU.FP8Flops
	case Smooth:
		return s.GPU.INT8Flops
	case NVFP4:
		return s.GPU.FP4Flops
	}
	return s.GPU.BF16Flops
}

// bandwidth is what each of n GPUs that talk to one another gets.
func (s *System) bandwidth(n int) float64 {
	switch {
	case n <= s.Node.GPUs:
		return s.Node.IntraNodeBandwidth
	case s.Node.GPUsPerRack == 0 || n <= s.Node.GPUsPerRack:
		return s.Node.InterNodeBandwidth
	}
	return s.Node.InterRackBandwidth
}

// beyond scales a latency measured with n ranks to more ranks: the share of data that leaves a rank grows, the bandwidth
// may shrink.
func (s *System) beyond(measured, ranks int) float64 {
	if ranks <= measured {
		return 1
	}
	g, e := float64(ranks), float64(measured)
	return (g - 1) / g * e / max(e-1, 1) * s.bandwidth(measured) / s.bandwidth(ranks)
}

// roofline is the time in ms at the speed of light: the longer of arithmetic and memory traffic.
func (s *System) roofline(operations, flops, bytes float64) float64 {
	return max(operations/flops, bytes/s.GPU.MemoryBandwidth) * 1000
}

// gemmLight is the speed of light of an (m,k) x (k,n) product.
func (s *System) gemmLight(q Quant, m, n, k float64) float64 {
	return s.roofline(2*m*n*k, s.flops(q), q.bytes()*(m*n+m*k+n*k))
}

// contextLight is the speed of light of attention over a prompt; isl is the whole length.
func (s *System) contextLight(key AttentionKey, heads, isl, batch float64) float64 {
	kvHeads, head := key.kvHeads(heads), float64(key.HeadDim)
	operations := 2 * batch * isl * isl * heads * head * 2 / 2
	if w := float64(key.Window); w > 0 && isl > w {
		operations = 2 * batch * isl * w * heads * head * 2
	}
	bytes := 2*batch*2*heads*isl*head + key.KVCache.bytes()*batch*2*kvHeads*isl*head
	return s.roofline(operations, s.flops(key.FMHA), bytes)
}

// generationLight is the speed of light of attention of one new token; the sequence is that token and its context.
func (s *System) generationLight(key AttentionKey, heads, batch, sequence float64) float64 {
	kvHeads, head := key.kvHeads(heads), float64(key.HeadDim)
	length := sequence - 1
	if key.Window > 0 {
		length = min(length, float64(key.Window))
	}
	flops := s.GPU.BF16Flops
	if key.KVCache == FP8 {
		flops = s.GPU.FP8Flops
	}
	bytes := batch * (2*heads*head + 2*kvHeads*length*head*key.KVCache.bytes() + 2*heads*head)
	return s.roofline(4*batch*heads*head*length, flops, bytes)
}

// moeLight is the speed of light of the experts of one rank. Divisions are those of whole numbers, left to right.
func (s *System) moeLight(key MoEKey, tokens int) float64 {
	routed, h, inter := tokens*key.TopK, key.Hidden, key.Inter
	operations := routed * h * inter * 3 * 2 / key.EP / key.TP
	bytes := routed/key.EP*h*2 + routed/key.EP*inter*3/key.TP + h*inter*3/key.TP*min(key.Experts/key.EP, routed/key.EP)
	return s.roofline(float64(operations), s.flops(key.Quant), key.Quant.bytes()*float64(bytes))
}

// contextMLALight is the speed of light of latent attention over a prompt.
func (s *System) contextMLALight(key MLAKey, heads, isl, batch float64) float64 {
	return s.roofline(batch*heads*320*isl*isl, s.flops(key.FMHA), batch*heads*(key.KVCache.bytes()*isl*320+2*isl*320))
}

// generationMLALight is the speed of light of latent attention of one new token, with the projections around it if the
// key names their format.
func (s *System) generationMLALight(key MLAKey, heads, batch, sequence float64) float64 {
	flops := s.GPU.BF16Flops
	if key.KVCache == FP8 {
		flops = s.GPU.FP8Flops
	}
	const latent = 128 * 512
	seconds := 2 * batch * heads * 1088 * sequence / flops
	bytes := batch * (heads*1088*2 + (sequence-1)*576*key.KVCache.bytes())
	if key.GEMM != "" {
		seconds += 4 * batch * heads * latent / s.flops(key.GEMM)
		bytes += 2 * heads * (batch*640 + latent) * key.GEMM.bytes()
	}
	return max(seconds, bytes/s.GPU.MemoryBandwidth) * 1000
}

// bmmLight is the speed of light of moving queries into the latent space, or results out of it.
func (s *System) bmmLight(key BMMKey, tokens float64) float64 {
	const latent = 128 * 512
	heads := float64(key.Heads)
	return s.roofline(2*tokens*heads*latent, s.flops(key.Quant), heads*(tokens*640+latent)*key.Quant.bytes())
}
