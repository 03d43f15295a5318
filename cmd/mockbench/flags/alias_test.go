package flags_test

import (
	"slices"
	"strings"
	"testing"

	"mockbench/cmd/mockbench/flags"
)

// Every --ais- flag that the reference also knows as --aic- gives the same under both names, and both at once are refused.
func TestOldNamesOfAISFlags(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	count := 0
	for _, f := range flags.All() {
		old := strings.Replace(f.Name, "--ais-", "--aic-", 1)
		if old == f.Name || f.Ours || f.Name == "--ais-perf-config" {
			continue
		}
		count++
		if !slices.Contains(f.Aliases, old) {
			t.Errorf("%s has no alias %s", f.Name, old)
			continue
		}
		var value []string
		if f.Kind != flags.Switch {
			value = []string{"2"}
		}
		now, err := flags.Read(append([]string{f.Name}, value...), none)
		if err != nil {
			t.Fatal(err)
		}
		before, err := flags.Read(append([]string{old}, value...), none)
		if err != nil {
			t.Fatalf("%s: %v", old, err)
		}
		a, b := now.Get(f.Name), before.Get(f.Name)
		if !b.Given() || a.Text != b.Text || a.On != b.On || (a.Int != nil && a.Int.Cmp(b.Int) != 0) {
			t.Errorf("%s gives %+v, %s %+v", f.Name, a, old, b)
		}
		both := slices.Concat([]string{f.Name}, value, []string{old}, value)
		if _, err := flags.Read(both, none); err == nil || !strings.Contains(err.Error(), f.Name+" and its older spelling") {
			t.Errorf("%s and %s together: got %v", f.Name, old, err)
		}
	}
	if count < 10 {
		t.Errorf("only %d flags", count)
	}
}
