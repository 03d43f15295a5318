package settings

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"

	"mockbench/profiles/kvbytes"
)

// kvBytes returns the size of the cached values of a token: as given, else computed from the model, else nil.
func (r *resolver) kvBytes() (fmt.Stringer, error) {
	if v := r.v.Get("--kv-bytes-per-token"); v.Given() {
		return v.Int, nil
	}
	path := r.s.Model.Path
	if path == "" {
		return nil, nil
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, nil // a hub id; whether it can be found is the model card's business
	}
	layout, err := kvbytes.Read(path, r.v.Text("--kv-cache-dtype"))
	if err != nil {
		r.warn("the size of cached values is unknown, give --kv-bytes-per-token if transfers or host offload matter: %v", err)
		return nil, nil
	}
	r.warnOfSize(layout)
	return big.NewInt(layout.Bytes), nil
}

// kvBytesOrigin says where that size comes from.
func (r *resolver) kvBytesOrigin() string {
	if v := r.v.Get("--kv-bytes-per-token"); v.Given() {
		return Origin(v)
	}
	return "computed from " + filepath.Join(r.s.Model.Path, "config.json")
}

// warnOfSize tells where the computed size is known to be off.
func (r *resolver) warnOfSize(l *kvbytes.Layout) {
	computed := l.Hidden / l.Heads
	switch {
	case l.Latent:
		r.warn("cached values are taken as %d bytes a token although the model compresses them, see --kv-bytes-per-token", l.Bytes)
	case l.HeadDim > 0 && l.HeadDim != computed:
		r.warn("cached values are taken as %d bytes a token although the model's head size is %d, not %d; --kv-bytes-per-token %d would be exact",
			l.Bytes, l.HeadDim, computed, l.Exact())
	}
	if r.v.Text("--kv-cache-dtype") == "fp8_e5m2" {
		r.warn("fp8_e5m2 values are taken as 2 bytes each, --kv-bytes-per-token %d would be exact", l.Bytes/2)
	}
}
