package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine/report"
)

func resolved(t *testing.T, args ...string) (*Settings, error) {
	t.Helper()
	none := func(string) (string, bool) { return "", false }
	v, err := flags.Read(args, none)
	if err != nil {
		t.Fatal(err)
	}
	return Resolve(v, none, Demo)
}

func TestSLO(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slo.toml")
	if err := os.WriteFile(file, []byte("[slo]\nttft_ms = 200.0\nitl_ms = 20.0\n[load]\nconcurrency = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want report.Limits
	}{
		{nil, report.Limits{}},
		{[]string{"--slo", "ttft_ms=300, itl_ms=25,e2e_ms=5e3"}, report.Limits{TTFT: 300, ITL: 25, E2E: 5000}},
		{[]string{"--profile", file}, report.Limits{TTFT: 200, ITL: 20}},
		{[]string{"--profile", file, "--slo", "itl_ms=0"}, report.Limits{TTFT: 200}},
	} {
		s, err := resolved(t, c.args...)
		if err != nil || s.SLO != c.want {
			t.Errorf("%q: %v, want %v", c.args, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"":              `--slo: got "", allowed: ttft_ms=MS, itl_ms=MS and e2e_ms=MS, separated by commas`,
		"ttft=3":        `--slo: got "ttft=3", allowed: `,
		"ttft_ms":       `--slo: got "ttft_ms", allowed: `,
		"itl_ms=-1":     "--slo itl_ms: got -1, must be finite and not negative",
		"e2e_ms=inf":    "--slo e2e_ms: got +Inf, must be finite",
		"ttft_ms=1,,":   `--slo: got "", allowed: `,
		"ttft_ms=1;x=2": `--slo: got "ttft_ms=1;x=2", allowed: `,
	} {
		if _, err := resolved(t, "--slo", text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestGoodputIsALimitOnlyWithSLO(t *testing.T) {
	if _, err := resolved(t, "--fail-on", "slo_attainment >= 0.9"); err == nil {
		t.Error("a limit on the share within no limits was accepted")
	}
	if _, err := resolved(t, "--slo", "ttft_ms=300", "--fail-on", "slo_attainment >= 0.9"); err != nil {
		t.Error(err)
	}
}
