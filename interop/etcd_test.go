package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// leaseTTL is the lease time of workers in these tests. A frontend gets a long one: what it does without its own lease
// is not what is tested.
const leaseTTL = 5 * time.Second

// etcdPath finds the server of Debian's etcd-server package, or installs it.
var etcdPath = sync.OnceValues(func() (string, error) {
	if path, err := exec.LookPath("etcd"); err == nil {
		return path, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	const install = "(apt-get install -y etcd-server || (apt-get update && apt-get install -y etcd-server))"
	if out, err := exec.CommandContext(ctx, "sh", "-c", install).CombinedOutput(); err != nil {
		return "", fmt.Errorf("no etcd in PATH and it cannot be installed; as root run: apt-get install etcd-server: %w\n%s", err, tail(string(out), 10))
	}
	return exec.LookPath("etcd")
})

// etcdServer is a real etcd server, which keeps its data when it is started again.
type etcdServer struct {
	*cluster
	dir    string
	url    string
	peer   string
	args   []string // more of the server
	server *process
	client *clientv3.Client
}

// steadyPort returns a free port that no outgoing connection takes while a server is away.
func steadyPort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port between 20000 and 30000")
	return 0
}

// newEtcd is a cluster whose discovery is etcd, and a server that is not started yet.
func newEtcd(t *testing.T) *etcdServer {
	t.Helper()
	c := newCluster(t)
	local := func() string { return fmt.Sprintf("http://127.0.0.1:%d", steadyPort(t)) }
	e := &etcdServer{cluster: c, dir: t.TempDir(), url: local(), peer: local()}
	c.env = []string{"DYN_DISCOVERY_BACKEND=etcd", "ETCD_ENDPOINTS=" + e.url, fmt.Sprintf("ETCD_LEASE_TTL=%.0f", leaseTTL.Seconds())}
	return e
}

// etcdCluster is a cluster whose discovery is etcd.
func etcdCluster(t *testing.T) *etcdServer {
	t.Helper()
	e := newEtcd(t)
	e.boot()
	e.connect()
	return e
}

// connect makes a client of the test's own.
func (e *etcdServer) connect() {
	e.t.Helper()
	var err error
	e.client, err = clientv3.New(clientv3.Config{Endpoints: []string{e.url}, Logger: zap.NewNop()})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { e.client.Close() })
	e.eventually(30*time.Second, "etcd answers", func() bool { _, err := e.get(); return err == nil })
}

// boot starts the server.
func (e *etcdServer) boot() {
	e.t.Helper()
	path, err := etcdPath()
	if err != nil {
		e.t.Fatal(err)
	}
	e.server = e.start("etcd", nil, append([]string{path, "--data-dir", e.dir, "--listen-client-urls", e.url, "--advertise-client-urls", e.url,
		"--listen-peer-urls", e.peer, "--initial-advertise-peer-urls", e.peer, "--initial-cluster", "default=" + e.peer}, e.args...)...)
}

func (e *etcdServer) get() (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return e.client.Get(ctx, "v1/", clientv3.WithPrefix())
}

// instances returns the leases of the workers that are registered, by the keys of their serving endpoints.
func (e *etcdServer) instances() map[string]clientv3.LeaseID {
	list := map[string]clientv3.LeaseID{}
	r, err := e.get()
	if err != nil {
		return list
	}
	for _, kv := range r.Kvs {
		if strings.HasPrefix(string(kv.Key), "v1/instances/dynamo/backend/generate/") {
			list[string(kv.Key)] = clientv3.LeaseID(kv.Lease)
		}
	}
	return list
}

// up waits until the model is listed and n workers are registered.
func (e *etcdServer) up(workers int) time.Duration {
	e.t.Helper()
	took := e.eventually(60*time.Second, fmt.Sprintf("%d workers are listed", workers), func() bool {
		return e.listed() && len(e.instances()) == workers
	})
	time.Sleep(300 * time.Millisecond) // the frontend connects to event channels after it lists
	return took
}

// patient starts a frontend with a lease of its own that outlives everything.
func (e *etcdServer) patient() {
	e.t.Helper()
	short := e.env
	e.env = append(short[:len(short):len(short)], "ETCD_LEASE_TTL=300")
	e.frontend("--router-mode", "kv")
	e.env = short
}

// empty waits until nothing of ours is left on the server.
func (e *etcdServer) empty() {
	e.t.Helper()
	e.eventually(10*time.Second, "no record is left", func() bool {
		r, err := e.get()
		return err == nil && len(r.Kvs) == 0
	})
}

func TestEtcdListsServesAndForgets(t *testing.T) {
	e := etcdCluster(t)
	e.patient()
	begin := time.Now()
	p := e.ours("--num-workers", "2")
	e.up(2)
	t.Logf("listed %.3f s after the start", time.Since(begin).Seconds())
	for key, lease := range e.instances() {
		if !strings.HasSuffix(key, fmt.Sprintf("/%x", int64(lease))) {
			t.Errorf("%s hangs on lease %x", key, int64(lease))
		}
	}
	e.mustChat("tell me about etcd", 8)
	took, status := p.stop(20 * time.Second)
	gone := e.eventually(5*time.Second, "the model is unlisted", func() bool { return !e.listed() })
	t.Logf("stopped after %d ms with status %d, unlisted %d ms later", took.Milliseconds(), status, gone.Milliseconds())
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	e.empty()
	leases, err := e.client.Leases(t.Context())
	if err != nil || len(leases.Leases) > 1 { // the frontend's
		t.Errorf("leases are left: %+v, %v", leases, err)
	}
}

func TestEtcdForgetsAKilledWorker(t *testing.T) {
	e := etcdCluster(t)
	e.patient()
	dir := modelDir(t)
	p := e.ours("--model-path", dir)
	e.reference(dir)
	e.up(2)
	p.kill()
	took := e.eventually(30*time.Second, "the killed worker is gone", func() bool { return len(e.instances()) == 1 })
	t.Logf("gone %.1f s after kill -9, leases last %v", took.Seconds(), leaseTTL)
	e.eventually(10*time.Second, "the other worker serves", func() bool {
		a, err := e.ask(t.Context(), "/v1/chat/completions", chat("are you there?", 4), nil)
		return err == nil && a.status == 200 && a.usage.Completion == 4
	})
}

// TestEtcdGoesAway stops the server for less than a lease: no worker notices, with or without --reregister.
func TestEtcdGoesAway(t *testing.T) {
	e := etcdCluster(t)
	e.patient()
	const ttl = 12 * time.Second // a third of it passes between renewals, another while the server is away
	p := e.oursIn([]string{fmt.Sprintf("ETCD_LEASE_TTL=%.0f", ttl.Seconds())})
	e.up(1)
	before := e.instances()
	e.server.stop(20 * time.Second)
	time.Sleep(time.Second)
	e.boot()
	time.Sleep(ttl + 2*time.Second)
	after := e.instances()
	if len(after) != 1 || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("registered before %v, after %v", before, after)
	}
	e.mustChat("still there?", 4)
	if _, status := p.stop(20 * time.Second); status != 0 {
		t.Errorf("exit status %d", status)
	}
	e.empty()
}

// outages are what costs a worker its lease; end lets the server serve again, nil if it never stopped.
var outages = map[string]struct{ begin, end func(*etcdServer) }{
	"revoked": {begin: func(e *etcdServer) {
		for _, lease := range e.instances() {
			if _, err := e.client.Revoke(e.t.Context(), lease); err != nil {
				e.t.Fatal(err)
			}
		}
	}},
	"stopped": {begin: func(e *etcdServer) { e.server.stop(20 * time.Second) }, end: func(e *etcdServer) { e.boot() }},
	"hung": {
		begin: func(e *etcdServer) { e.server.signal(syscall.SIGSTOP) },
		end:   func(e *etcdServer) { e.server.signal(syscall.SIGCONT) },
	},
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// says waits until a process has written a text.
func (p *process) says(limit time.Duration, text string) time.Duration {
	p.t.Helper()
	begin := time.Now()
	for !strings.Contains(p.log.String(), text) {
		if time.Since(begin) > limit {
			p.t.Fatalf("%s does not say %q within %v", p.name, text, limit)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(begin)
}

// TestEtcdLosesAWorkerThatComesBack expects a worker under its old id that serves again, with a full cache of which the
// router knows.
func TestEtcdLosesAWorkerThatComesBack(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			e := etcdCluster(t)
			e.patient()
			p := e.ours("--reregister")
			e.up(1)
			before := e.instances()
			story := explained(strings.Repeat("once upon a time ", 60), 4)
			first := e.mustExplain(story)
			outage.begin(e)
			noticed := p.says(6*leaseTTL, "registering again")
			if outage.end != nil {
				outage.end(e)
			}
			back := p.says(60*time.Second, "registered again")
			listed := e.up(1)
			t.Logf("noticed after %.1f s, registered %.1f s after the server was back, listed %.1f s later", noticed.Seconds(), back.Seconds(), listed.Seconds())
			if after := e.instances(); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("registered before %v, after %v", before, after)
			}
			again := e.mustExplain(story)
			if again.worker != first.worker || again.hitRate < 0.5 || again.usage.Details.Cached == 0 {
				t.Errorf("the router knows worker %d with %+v, then worker %d with a share of %v", first.worker, first.usage, again.worker, again.hitRate)
			}
			if _, status := p.stop(20 * time.Second); status != 0 {
				t.Errorf("exit status %d", status)
			}
			e.empty()
		})
	}
}

// TestEtcdLosesAWorkerThatEnds expects the process to end, but not before the answers in flight are complete.
func TestEtcdLosesAWorkerThatEnds(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			e := etcdCluster(t)
			e.patient()
			p := e.ours("--speedup-ratio", "0.2")
			e.up(1)
			ended := e.begin("a long story", 400)
			begin := time.Now()
			outage.begin(e)
			select {
			case <-p.done:
			case <-time.After(60 * time.Second):
				t.Fatal("the process goes on")
			}
			t.Logf("the process ended %.1f s later", time.Since(begin).Seconds())
			if o := <-ended; !o.complete(400) {
				t.Errorf("the answer in flight: %+v", o)
			}
			if status := p.cmd.ProcessState.ExitCode(); status != 1 || !strings.Contains(p.log.String(), "error: etcd at "+e.url+" lost worker") {
				t.Errorf("exit status %d", status)
			}
			if outage.end != nil {
				outage.end(e)
			}
			e.empty()
		})
	}
}

func TestEtcdIsChosenWhereItAnswers(t *testing.T) {
	e := etcdCluster(t)
	e.patient()
	e.env = []string{"ETCD_ENDPOINTS=" + e.url}
	cmd := append([]string{"-u", "DYN_DISCOVERY_BACKEND", binary, "--no-tui", "--model-name", modelName}, "--num-gpu-blocks-override", "1000")
	p := e.start("mockbench", nil, append([]string{"env"}, cmd...)...)
	e.up(1)
	p.says(10*time.Second, "discovery etcd, because ETCD_ENDPOINTS is set")
	e.mustChat("found you", 4)
}
