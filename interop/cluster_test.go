package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mockbench/transport/modelcard"
)

const modelName = "mock"

// cluster is one deployment with a discovery folder of its own.
type cluster struct {
	t    testing.TB
	root string
	home string   // of the frontend, so that its model cache starts empty
	url  string   // of the frontend
	env  []string // of every process
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	return &cluster{t: t, root: t.TempDir(), home: t.TempDir()}
}

// modelDir is the directory of the built-in model, for workers that are told where their model is.
func modelDir(t testing.TB) string {
	t.Helper()
	m, err := modelcard.Builtin(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return m.Dir
}

// process is a running program.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	log  buffer
	done chan struct{}
	err  error
}

// buffer collects output that is written and read at the same time.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start runs a program in the cluster until the test ends.
func (c *cluster) start(name string, env []string, argv ...string) *process {
	c.t.Helper()
	p := &process{t: c.t, name: name, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "DYN_DISCOVERY_BACKEND=file", "DYN_FILE_KV="+c.root, "HF_HUB_OFFLINE=1",
		"DYN_TCP_RPC_HOST=127.0.0.1", "DYN_EVENT_PLANE_HOST=127.0.0.1")
	p.cmd.Env = append(append(p.cmd.Env, c.env...), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	c.t.Cleanup(func() {
		p.kill()
		if c.t.Failed() {
			c.t.Logf("%s said:\n%s", name, tail(p.log.String(), 60))
		}
	})
	return p
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// stop sends SIGTERM and returns how long the process took to end, and its exit status.
func (p *process) stop(limit time.Duration) (time.Duration, int) {
	p.t.Helper()
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(limit):
		p.t.Fatalf("%s still runs %v after SIGTERM", p.name, limit)
	}
	return time.Since(begin), p.cmd.ProcessState.ExitCode()
}

// frontend starts the real frontend and waits until it answers.
func (c *cluster) frontend(args ...string) *process {
	c.t.Helper()
	port := freePort(c.t)
	c.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	p := c.start("frontend", []string{"HOME=" + c.home, "DYN_LOG=error"},
		append([]string{python, "-m", "dynamo.frontend", "--http-port", fmt.Sprint(port)}, args...)...)
	c.eventually(60*time.Second, "the frontend answers", func() bool {
		_, err := c.models()
		return err == nil
	})
	return p
}

// ours starts our program as a worker with the built-in model.
func (c *cluster) ours(args ...string) *process {
	c.t.Helper()
	return c.oursIn(nil, args...)
}

func (c *cluster) oursIn(env []string, args ...string) *process {
	c.t.Helper()
	return c.start("mockbench", env, append([]string{binary, "--no-tui", "--model-name", modelName}, args...)...)
}

// reference starts the real mocker.
func (c *cluster) reference(dir string, args ...string) *process {
	c.t.Helper()
	return c.start("reference mocker", []string{"DYN_LOG=error"},
		append([]string{python, "-m", "dynamo.mocker", "--model-path", dir, "--model-name", modelName}, args...)...)
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// eventually polls until a condition holds.
func (c *cluster) eventually(limit time.Duration, what string, holds func() bool) time.Duration {
	c.t.Helper()
	begin := time.Now()
	for !holds() {
		if time.Since(begin) > limit {
			c.t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(begin)
}

// models lists what the frontend serves.
func (c *cluster) models() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/v1/models", nil)
	if err != nil {
		return nil, err
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
		return nil, err
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

func (c *cluster) listed() bool {
	names, err := c.models()
	return err == nil && len(names) == 1 && names[0] == modelName
}

// serving waits until the model is listed by the frontend and n workers are registered.
func (c *cluster) serving(workers int) {
	c.t.Helper()
	c.eventually(60*time.Second, fmt.Sprintf("%d workers are listed", workers), func() bool {
		return c.listed() && len(c.records("instances", "generate")) == workers
	})
	time.Sleep(300 * time.Millisecond) // the frontend connects to event channels after it lists
}

// records returns the discovery files of a bucket whose name contains a word.
func (c *cluster) records(bucket, word string) []string {
	files, _ := filepath.Glob(filepath.Join(c.root, "v1", bucket, "*"+word+"*"))
	return files
}
