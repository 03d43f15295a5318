package app

import (
	"os"

	"mockbench/engine"
	"mockbench/profiles"
	"mockbench/transport/modelcard"
)

// RuntimeConfig is mocker.RuntimeConfig.
func RuntimeConfig(l *profiles.Launch) (blockSize int, r modelcard.Runtime, err error) {
	for _, limit := range []struct {
		name  string
		value uint64
	}{{"max_num_seqs", l.Engine.MaxNumSeqs}, {"max_num_batched_tokens", l.Engine.MaxNumBatchedTokens}} {
		if limit.value == engine.Unlimited {
			return 0, r, &engine.SettingError{Setting: "engine." + limit.name, Kind: engine.KindUnsupported, Given: "no limit",
				Allowed: "must be bounded for a live worker"}
		}
	}
	o := modelcard.Options{Engine: l.Engine, Ranks: int(l.DPSize), LocalIndexer: l.Dynamo.EnableLocalIndexer,
		StableRoutingID: os.Getenv("DYN_STABLE_ROUTING_ID")}
	if o.Topology, err = modelcard.ReadTopology(os.Getenv); err != nil {
		return 0, r, err
	}
	if port := l.Dynamo.BootstrapPort; port != nil && l.Engine.Role == engine.PrefillRole {
		host, err := bootstrapHost()
		if err != nil {
			return 0, r, err
		}
		o.Bootstrap = &modelcard.Bootstrap{Host: host, Port: int(*port)}
	}
	return l.Engine.BlockSize, modelcard.NewRuntime(o), nil
}
