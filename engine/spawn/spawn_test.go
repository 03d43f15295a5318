package spawn

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// child is the variable that makes the test binary panic in a goroutine instead of running tests.
const child = "SPAWN_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(child) {
	case "":
		os.Exit(m.Run())
	case "handler":
		OnPanic(func(report string) {
			fmt.Println("handled: " + report)
			os.Exit(7)
		})
	case "restored":
		OnPanic(func(string) { os.Exit(7) })()
	}
	for range 3 { // only one of them is told
		Go("worker w3", func() { panic("out of blocks") })
	}
	time.Sleep(time.Minute)
}

func TestPanicEndsTheProgram(t *testing.T) {
	for _, c := range []struct {
		mode   string
		status int
		prefix string
	}{
		{"default", ExitPanic, "panic in worker w3: out of blocks"},
		{"restored", ExitPanic, "panic in worker w3: out of blocks"},
		{"handler", 7, "handled: panic in worker w3: out of blocks"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), child+"="+c.mode)
			output, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.status {
				t.Errorf("ended with %v, want status %d", err, c.status)
			}
			text := string(output)
			if !strings.HasPrefix(text, c.prefix) || strings.Count(text, "out of blocks") < 1 ||
				strings.Count(text, "panic in") != 1 || !strings.Contains(text, "spawn_test.go") {
				t.Errorf("printed:\n%s", text)
			}
		})
	}
}

func TestGoRuns(t *testing.T) {
	done := make(chan bool)
	Go("test", func() { close(done) })
	<-done
}
