package sweepcmd

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/profiles"
)

// base is the replay that all runs have in common.
type base struct {
	flags  []string                    // "--name=value"
	files  []string                    // traces
	inputs []string                    // files that runs read, traces included
	engine map[string]*profiles.Object // by flag: configurations, read from their files
}

// engineFlags are the flags with configurations of workers, by pool.
var engineFlags = map[string]string{
	"": "extra-engine-args", "prefill": "prefill-engine-args", "decode": "decode-engine-args",
}

// newBase takes what belongs to the replay from a command line that has its flags beside others.
func newBase(set *pflag.FlagSet, others map[string]bool) (*base, error) {
	b := &base{files: set.Args(), engine: map[string]*profiles.Object{}}
	var err error
	set.Visit(func(f *pflag.Flag) {
		switch {
		case err != nil || others[f.Name]:
		case f.Name == engineFlags[""] || f.Name == engineFlags["prefill"] || f.Name == engineFlags["decode"]:
			b.engine[f.Name], err = readObject(f.Name, f.Value.String())
		case f.Name == "router-config":
			var o *profiles.Object
			if o, err = readObject(f.Name, f.Value.String()); err == nil {
				var text []byte
				text, err = json.Marshal(o)
				b.flags = append(b.flags, "--router-config="+string(text))
			}
		case f.Value.Type() == "stringArray":
			list, _ := set.GetStringArray(f.Name)
			for _, v := range list {
				b.flags = append(b.flags, "--"+f.Name+"="+v)
			}
		default:
			b.flags = append(b.flags, "--"+f.Name+"="+f.Value.String())
		}
	})
	if err != nil {
		return nil, err
	}
	b.inputs = slices.Clone(b.files)
	if f := set.Lookup("planner-profile-data"); f.Changed {
		b.inputs = append(b.inputs, f.Value.String())
	}
	for _, path := range b.files {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
	}
	return b, nil
}

// readObject reads the JSON of a flag, from the file it names with @.
func readObject(flag, text string) (*profiles.Object, error) {
	data := []byte(text)
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
	}
	return profiles.ParseJSON("--"+flag, data)
}

// args returns the command line of a run with settings of its own.
func (b *base) args(targets []target, values []string) ([]string, error) {
	flags := slices.Clone(b.flags)
	engine := map[string]*profiles.Object{}
	for name, o := range b.engine {
		engine[name] = o.Clone()
	}
	for i, t := range targets {
		if t.flag != "" {
			flags = append(flags, "--"+t.flag+"="+values[i])
			continue
		}
		for _, name := range b.pools(t) {
			if engine[name] == nil {
				engine[name] = profiles.NewObject()
			}
			engine[name].Set(t.path, settingValue(values[i]))
		}
	}
	for _, name := range []string{engineFlags[""], engineFlags["prefill"], engineFlags["decode"]} {
		if o := engine[name]; o != nil {
			text, err := json.Marshal(o)
			if err != nil {
				return nil, err
			}
			flags = append(flags, "--"+name+"="+string(text))
		}
	}
	return append(flags, b.files...), nil
}

// pools returns the flags of the configurations that a setting goes to.
func (b *base) pools(t target) []string {
	split := b.engine[engineFlags["prefill"]] != nil || b.engine[engineFlags["decode"]] != nil
	switch {
	case t.pool != "":
		return []string{engineFlags[t.pool]}
	case split:
		return []string{engineFlags["prefill"], engineFlags["decode"]}
	}
	return []string{engineFlags[""]}
}

// settingValue reads a value as JSON if it is a number, a truth value, null or an object, else as a text.
func settingValue(text string) any {
	o, err := profiles.ParseJSON("value", []byte(`{"v":`+text+`}`))
	if err != nil {
		return text
	}
	v, _ := o.Raw("v")
	return v
}

// plan checks a run.
func (b *base) plan(targets []target, values []string) (*replaycmd.Plan, []string, error) {
	args, err := b.args(targets, values)
	if err != nil {
		return nil, nil, err
	}
	p, err := replaycmd.NewPlan(args)
	if err != nil {
		var at []string
		for i, t := range targets {
			at = append(at, t.name+"="+values[i])
		}
		if len(at) > 0 {
			err = fmt.Errorf("run with %s: %w", strings.Join(at, " "), err)
		}
	}
	return p, args, err
}
