package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// values are what placeholders stood for: the same everywhere, but for publishers and ports of one record.
type values map[string]string

var placeholder = regexp.MustCompile(`\$\{([A-Z_]+)\}`)

// text compares a text that may hold placeholders.
func (v values) text(want, got string) bool {
	var pattern strings.Builder
	var names []string
	at := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(want, -1) {
		pattern.WriteString(regexp.QuoteMeta(want[at:m[0]]) + `([^/]+?)`)
		names = append(names, want[m[2]:m[3]])
		at = m[1]
	}
	m := regexp.MustCompile("^" + pattern.String() + regexp.QuoteMeta(want[at:]) + "$").FindStringSubmatch(got)
	if m == nil {
		return false
	}
	for i, name := range names {
		if known, ok := v[name]; ok && known != m[i+1] {
			return false
		}
		v[name] = m[i+1]
		if id, isHex := strings.CutSuffix(name, "_HEX"); isHex {
			n, err := strconv.ParseUint(m[i+1], 16, 64)
			decimal := strconv.FormatUint(n, 10)
			if known, ok := v[id+"_ID"]; err != nil || ok && known != decimal {
				return false
			}
			v[id+"_ID"] = decimal
		}
	}
	return true
}

// same compares a value and says where it differs.
func (v values) same(path string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for name := range g {
			if _, ok := w[name]; !ok {
				return fmt.Errorf("%s.%s is there and must not be", path, name)
			}
		}
		for name := range w {
			if _, ok := g[name]; !ok {
				return fmt.Errorf("%s.%s is missing", path, name)
			}
			if err := v.same(path+"."+name, w[name], g[name]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, _ := got.([]any)
		if strings.HasSuffix(path, ".taints") || strings.HasSuffix(path, ".extra_files") {
			sortValues(w)
			sortValues(g)
		}
		if len(w) != len(g) {
			return fmt.Errorf("%s has %d elements, want %d", path, len(g), len(w))
		}
		for i := range w {
			if err := v.same(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		g, _ := got.(json.Number)
		x, xerr := w.Float64()
		y, yerr := g.Float64()
		if xerr == nil && yerr == nil && x == y {
			return nil
		}
	case string:
		if v.text(w, fmt.Sprint(got)) {
			return nil
		}
	default:
		if want == got {
			return nil
		}
	}
	return fmt.Errorf("%s is %v, want %v", path, got, want)
}

func sortValues(list []any) {
	file := func(v any) string {
		text, _ := json.Marshal(v)
		return string(text[bytes.LastIndexByte(text, '/')+1:])
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(file(a), file(b)) })
}

// compareRecords pairs every expected record with one that is there.
func compareRecords(t *testing.T, want, got []record) {
	t.Helper()
	all := values{}
	for _, w := range want {
		found := slices.IndexFunc(got, func(g record) bool {
			return g.Bucket == w.Bucket && values{}.text(w.Key, g.Key)
		})
		if found < 0 {
			t.Errorf("no record %s %s", w.Bucket, w.Key)
			continue
		}
		g := got[found]
		got = slices.Delete(got, found, found+1)
		for _, name := range []string{"PUBLISHER_ID", "PUBLISHER_HEX", "ZMQ_HOSTPORT"} {
			delete(all, name)
		}
		if !all.text(w.Key, g.Key) {
			t.Errorf("key %s, want %s with %v", g.Key, w.Key, all)
		}
		if err := all.same(w.Key, w.Value, g.Value); err != nil {
			t.Error(err)
		}
	}
	for _, g := range got {
		t.Errorf("record %s %s must not be there", g.Bucket, g.Key)
	}
}
