package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"mockbench/cmd/mockbench/flags"
	"mockbench/profiles"
)

// CommandLine returns the flags that give the settings of a profile, beside those of another one, which "--profile"
// names; nil is none. rest names the settings that no flag gives.
func CommandLine(base, now *profiles.Profile) (args, rest []string) {
	c := commandLine{now: now, base: &profiles.Profile{Workers: 1, Launch: profiles.NewObject()}}
	if base != nil {
		c.base = base
		c.args = []string{"--profile", base.Name}
	}
	c.workers()
	c.launch()
	c.slo()
	c.load()
	return c.args, c.rest
}

// slo adds the limits of latencies that differ.
func (c *commandLine) slo() {
	var parts []string
	for _, l := range []struct {
		name      string
		now, base float64
	}{{"ttft_ms", c.now.SLO.TTFT, c.base.SLO.TTFT}, {"itl_ms", c.now.SLO.ITL, c.base.SLO.ITL}, {"e2e_ms", c.now.SLO.E2E, c.base.SLO.E2E}} {
		if l.now != l.base {
			parts = append(parts, l.name+"="+strconv.FormatFloat(l.now, 'g', -1, 64))
		}
	}
	if len(parts) > 0 {
		c.add("--slo", strings.Join(parts, ","))
	}
}

// load names the settings of the load that differ; no flag gives them.
func (c *commandLine) load() {
	if c.base.Load == nil || c.now.Load == nil {
		if c.base.Load != c.now.Load {
			c.rest = append(c.rest, "load")
		}
		return
	}
	now, base := c.now.Load.Object(), c.base.Load.Object()
	paths := settingNames("", now)
	for _, p := range settingNames("", base) {
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	for _, p := range paths {
		mine, _ := now.Get(p)
		usual, _ := base.Get(p)
		if !sameJSON(mine, usual) {
			c.rest = append(c.rest, "load."+p)
		}
	}
}

type commandLine struct {
	base, now  *profiles.Profile
	args, rest []string
}

func (c *commandLine) add(flag, value string) {
	if len(value) > 0 && value[0] == '-' {
		c.args = append(c.args, flag+"="+value)
		return
	}
	c.args = append(c.args, flag, value)
}

func (c *commandLine) workers() {
	count := func(flag string, n, usual uint32) {
		if n != usual {
			c.add(flag, strconv.FormatUint(uint64(n), 10))
		}
	}
	switch n, b := c.now, c.base; {
	case n.PrefillWorkers > 0:
		count(rolePair[0], n.PrefillWorkers, b.PrefillWorkers)
		count(rolePair[1], n.DecodeWorkers, b.DecodeWorkers)
	case b.PrefillWorkers > 0:
		count("--num-workers", n.Workers, 0)
	default:
		count("--num-workers", n.Workers, b.Workers)
	}
}

// launch adds the settings of the launch that differ, also those that went back to their default.
func (c *commandLine) launch() {
	l, err := c.now.Resolve()
	if err != nil {
		c.rest = append(c.rest, err.Error())
		return
	}
	final := l.Canonical()
	paths := settingNames("", c.now.Launch)
	for _, p := range settingNames("", c.base.Launch) {
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	for _, path := range paths {
		mine, given := c.now.Launch.Get(path)
		usual, both := c.base.Launch.Get(path)
		if !given {
			mine, _ = final.Get(path)
		}
		if !both || !sameJSON(mine, usual) {
			c.setting(path, mine)
		}
	}
}

// setting adds the flag of a setting.
func (c *commandLine) setting(path string, v any) {
	if path == "dynamo.enable_local_indexer" && v == true {
		return // as without a profile
	}
	if o, ok := v.(*profiles.Object); ok && path == "engine.timing_model" {
		if file, _ := o.Get("config.path"); file != nil {
			c.add("--planner-profile-data", fmt.Sprint(file))
			return
		}
	}
	f := flagFor(path)
	text, plain := plainText(v)
	switch {
	case path == "engine.kv_cache_bytes_per_token" && c.cacheBytesGiven(v):
	case path == "dynamo.reasoning":
		text, _ := json.Marshal(v)
		c.add("--reasoning", string(text))
	case path == "engine.worker_type":
		c.add(f.Name, strings.Replace(text, "aggregated", "agg", 1))
	case f == nil || !plain:
		c.rest = append(c.rest, path)
	case f.Kind == flags.Switch && v == true:
		c.args = append(c.args, f.Name)
	case f.Kind == flags.Switch && len(f.Off) > 0:
		c.args = append(c.args, f.Off[0])
	default:
		c.add(f.Name, text)
	}
}

// cacheBytesGiven reports whether --kv-bytes-per-token gives the size in the cache as well as that of transfers.
func (c *commandLine) cacheBytesGiven(v any) bool {
	transfer, ok := c.now.Launch.Get("engine.kv_transfer_bytes_per_token")
	_, host := c.now.Launch.Get("engine.native_host_offload")
	_, hostBefore := c.base.Launch.Get("engine.native_host_offload")
	return ok && transfer == v && host && !hostBefore
}

// flagFor returns the flag that gives a setting and nothing else, nil if there is none.
func flagFor(path string) *flags.Flag {
	name := flagOf[path]
	switch path {
	case "engine.kv_cache_bytes_per_token", "dynamo.bootstrap_port", "dynamo.zmq_kv_events_port", "dynamo.zmq_replay_port":
		return nil // a list for all workers, or more than the setting
	}
	for _, f := range flags.All() {
		if f.Field == path || name != "" && f.Name == name {
			return f
		}
	}
	return nil
}

func plainText(v any) (text string, ok bool) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), true
	case string:
		return v, true
	case bool:
		return fmt.Sprint(v), true
	}
	return "", false
}

func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// settingNames returns the dotted names of the settings of an object. Blocks that one flag gives, or none, are single
// settings.
func settingNames(path string, o *profiles.Object) (names []string) {
	for _, k := range o.Keys() {
		v, _ := o.Raw(k)
		inner, isObject := v.(*profiles.Object)
		switch name := path + k; {
		case !isObject || name == "engine.timing_model" || name == "dynamo.reasoning":
			names = append(names, name)
		default:
			names = append(names, settingNames(name+".", inner)...)
		}
	}
	return names
}

// Shell returns arguments as one writes them in a shell.
func Shell(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if a == "" || strings.ContainsFunc(a, func(c rune) bool {
			return c > unicode.MaxASCII || strings.ContainsRune(" \t\n\"'`$&|;<>()*?[]{}#~!\\", c)
		}) {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
