package aiscmd

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/engine/timing/ais"
	"mockbench/profiles/aisdata"
)

// arguments are the values of the command line.
type arguments struct {
	pkg, version, to                                  string
	model, system, backend, backendVersion            string
	data, rules                                       string
	tp, attentionDP, moeTP, moeEP, nextn              int
	batch, isl, prefix, context                       int
	markdown, help                                    bool
	systemGiven, backendGiven, islGiven, contextGiven bool
}

func newFlags(a *arguments) *pflag.FlagSet {
	f := flags.NewSet("mockbench ais")
	f.StringVar(&a.pkg, "package", aisdata.Released, "fetch: Python package with the measurements, "+aisdata.Released+" or "+aisdata.Recorded+" (`NAME`)")
	f.StringVar(&a.version, "version", "", "fetch: version of that package (`V`)")
	f.StringVar(&a.to, "to", "", "fetch: folder that gets the data, in place of the cache (`DIR`)")
	f.StringVar(&a.data, "data", "", "folder or wheel with the data (`PATH`)")
	f.StringVar(&a.model, "model", "", "name or folder of the model; for list, a part of the name (`M`)")
	f.StringVar(&a.system, "system", "h200_sxm", "GPU system (`S`)")
	f.StringVar(&a.backend, "backend", "vllm", "vllm, sglang or trtllm (`B`)")
	f.StringVar(&a.backendVersion, "backend-version", "current", "version of the backend: current, previous, next or a number (`V`)")
	f.IntVar(&a.tp, "tp", 1, "GPUs that share attention (`N`)")
	f.IntVar(&a.attentionDP, "attention-dp", 1, "ranks with attention of their own (`N`)")
	f.IntVar(&a.moeTP, "moe-tp", 0, "GPUs that share an expert; with --moe-ep, needed for experts on several GPUs (`N`)")
	f.IntVar(&a.moeEP, "moe-ep", 0, "groups that the experts are spread over (`N`)")
	f.IntVar(&a.nextn, "nextn", 0, "draft tokens (`N`)")
	f.IntVar(&a.batch, "batch", 1, "requests in the pass (`N`)")
	f.IntVar(&a.isl, "isl", 1024, "explain a prefill of prompts of so many `TOKENS`")
	f.IntVar(&a.prefix, "prefix", 0, "of which so many `TOKENS` are cached")
	f.IntVar(&a.context, "context", 1024, "explain a decode step of contexts of so many `TOKENS`")
	f.StringVar(&a.rules, "rules", string(ais.Rules013), "rules of the estimator: 0.13, as in Dynamo 1.6.1, or 0.12 (`V`)")
	f.BoolVar(&a.markdown, "markdown", false, "list: a table for documents")
	f.BoolVarP(&a.help, "help", "h", false, "print this text and exit")
	return f
}

func (c *command) parse(args []string) error {
	f := newFlags(&c.arguments)
	if err := flags.ParseSet(f, args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return &flags.UsageError{Text: "unexpected argument " + f.Arg(0)}
	}
	a := &c.arguments
	a.systemGiven, a.backendGiven = f.Changed("system"), f.Changed("backend")
	a.contextGiven, a.islGiven = f.Changed("context"), f.Changed("isl") || f.Changed("prefix")
	return a.check()
}

func (a *arguments) check() error {
	for _, n := range []struct {
		flag       string
		value, low int
	}{
		{"--tp", a.tp, 1}, {"--attention-dp", a.attentionDP, 1}, {"--moe-tp", a.moeTP, 0}, {"--moe-ep", a.moeEP, 0}, {"--nextn", a.nextn, 0},
		{"--batch", a.batch, 1}, {"--isl", a.isl, 1}, {"--prefix", a.prefix, 0}, {"--context", a.context, 1},
	} {
		if n.value < n.low {
			return &flags.UsageError{Text: fmt.Sprintf("%s: got %d, must be at least %d", n.flag, n.value, n.low)}
		}
	}
	switch {
	case a.pkg != aisdata.Released && a.pkg != aisdata.Recorded:
		return &flags.UsageError{Text: fmt.Sprintf("--package: got %q, allowed: %s, %s", a.pkg, aisdata.Released, aisdata.Recorded)}
	case a.prefix >= a.isl:
		return &flags.UsageError{Text: fmt.Sprintf("--prefix: got %d, must be less than --isl %d", a.prefix, a.isl)}
	case (a.moeTP == 0) != (a.moeEP == 0):
		return &flags.UsageError{Text: "--moe-tp and --moe-ep must be given together"}
	case a.rules != string(ais.Rules012) && a.rules != string(ais.Rules013):
		return &flags.UsageError{Text: fmt.Sprintf("--rules: got %q, allowed: 0.12, 0.13", a.rules)}
	}
	switch engine.Backend(a.backend) {
	case engine.VLLM, engine.SGLang, engine.TRTLLM:
		return nil
	}
	return &flags.UsageError{Text: fmt.Sprintf("--backend: got %q, allowed: vllm, sglang, trtllm", a.backend)}
}

// root is the data that the command reads.
func (a *arguments) root() (*aisdata.Root, error) {
	if a.data != "" {
		return aisdata.Find(a.data)
	}
	return aisdata.Find()
}

// descriptor is what explain predicts.
func (a *arguments) descriptor() (aisdata.Descriptor, error) {
	if a.model == "" {
		return aisdata.Descriptor{}, errors.New("--model: must be given")
	}
	return aisdata.Descriptor{Model: a.model, System: a.system, Backend: engine.Backend(a.backend), Version: a.backendVersion, TP: a.tp,
		AttentionDP: a.attentionDP, MoETP: a.moeTP, MoEEP: a.moeEP, Nextn: a.nextn, Rules: ais.Rules(a.rules)}, nil
}
