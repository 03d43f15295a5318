package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTakenPortOfTheWire expects a port of vLLM's wire that is taken to be blamed on the flag that named it.
func TestTakenPortOfTheWire(t *testing.T) {
	for _, flag := range []string{"--zmq-kv-events-ports", "--zmq-replay-ports"} {
		taken, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		_, port, _ := net.SplitHostPort(taken.Addr().String())
		ports := map[string]string{"--zmq-kv-events-ports": freePort(t), "--zmq-replay-ports": freePort(t)}
		ports[flag] = port
		args := []string{"--no-tui", "--discovery-backend", "mem"}
		for name, value := range ports {
			args = append(args, name, value)
		}
		cmd := exec.Command("mockbench", args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DYN_LOG=error"}
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 1 || strings.Count(string(out), "error: ") != 1 ||
			!strings.Contains(string(out), flag+": ") || !strings.Contains(string(out), ":"+port) {
			t.Errorf("%s: exit status %d, %q", flag, code, out)
		}
	}
}
