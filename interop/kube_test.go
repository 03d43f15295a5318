package interop

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"mockbench/transport/discovery/kube/kubetest"
)

const kubeNamespace = "ns1"

// kubeCluster is a cluster whose discovery is a small API server.
type kubeCluster struct {
	*cluster
	api *kubetest.Server
}

func newKubeCluster(t *testing.T) *kubeCluster {
	t.Helper()
	k := &kubeCluster{newCluster(t), kubetest.Start()}
	t.Cleanup(k.api.Close)
	config, err := k.api.Kubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	k.env = []string{"DYN_DISCOVERY_BACKEND=kubernetes", "KUBECONFIG=" + config, "POD_NAMESPACE=" + kubeNamespace,
		"POD_NAME=frontend-0", "POD_UID=uid-frontend-0"}
	return k
}

// as runs what follows as a pod, whose process is ready as soon as it is started.
func (k *kubeCluster) as(pod string) []string {
	uid := "uid-" + pod
	k.api.Ready(kubeNamespace, pod, uid, true)
	return []string{"POD_NAME=" + pod, "POD_UID=" + uid}
}

// endpoints returns the number of endpoints in a pod's resource, -1 if there is no resource.
func (k *kubeCluster) endpoints(pod string) int {
	k.t.Helper()
	data := k.api.Resource(kubeNamespace, pod)
	if data == nil {
		return -1
	}
	var r struct {
		Spec struct {
			Data struct{ Endpoints map[string]any }
		}
	}
	if err := json.Unmarshal(data, &r); err != nil {
		k.t.Fatal(err)
	}
	return len(r.Spec.Data.Endpoints)
}

func (k *kubeCluster) shown(want bool) time.Duration {
	k.t.Helper()
	return k.eventually(60*time.Second, fmt.Sprintf("listed is %v", want), func() bool {
		_, err := k.models()
		return err == nil && k.listed() == want
	})
}

func TestKubernetesListsServesAndForgets(t *testing.T) {
	k := newKubeCluster(t)
	k.frontend("--router-mode", "kv")
	begin := time.Now()
	p := k.oursIn(k.as("worker-0"))
	k.shown(true)
	t.Logf("listed %.3f s after the start", time.Since(begin).Seconds())
	time.Sleep(300 * time.Millisecond) // the frontend connects to event channels after it lists
	k.mustChat("tell me about pods", 8)
	story := explained("a long prompt that fills a few blocks of the cache, so that the router can know it from events. "+
		"It goes on and on, without a point, until there is enough of it.", 4)
	k.mustExplain(story)
	if a := k.mustExplain(story); a.hitRate == 0 {
		t.Errorf("the router knows nothing of the worker's cache: %+v", a)
	}
	took, status := p.stop(20 * time.Second)
	gone := k.shown(false)
	t.Logf("stopped after %d ms with status %d, unlisted %d ms later", took.Milliseconds(), status, gone.Milliseconds())
	if status != 0 || k.endpoints("worker-0") >= 0 {
		t.Errorf("exit status %d, resource %s", status, k.api.Resource(kubeNamespace, "worker-0"))
	}
}

// TestKubernetesReadiness follows the endpoint slices: a pod that is not ready, or another of its name, serves nobody.
func TestKubernetesReadiness(t *testing.T) {
	k := newKubeCluster(t)
	k.frontend()
	p := k.oursIn(k.as("worker-0"))
	k.shown(true)
	k.api.Ready(kubeNamespace, "worker-0", "uid-worker-0", false)
	k.shown(false)
	k.api.Ready(kubeNamespace, "worker-0", "uid-another", true)
	time.Sleep(500 * time.Millisecond)
	if k.listed() {
		t.Error("a pod of another uid is listed")
	}
	k.api.Ready(kubeNamespace, "worker-0", "uid-worker-0", true)
	k.shown(true)
	k.mustChat("back again", 4)
	p.kill()
	k.api.Ready(kubeNamespace, "worker-0", "uid-worker-0", false)
	k.shown(false)
}

// TestKubernetesBesideTheReference has a worker of each kind, and stops the real one.
func TestKubernetesBesideTheReference(t *testing.T) {
	k := newKubeCluster(t)
	k.frontend("--router-mode", "round-robin")
	dir := modelDir(t)
	k.oursIn(k.as("worker-0"), "--model-path", dir)
	k.shown(true)
	theirs := k.start("reference mocker", append(k.as("worker-1"), "DYN_LOG=warn"), python, "-m", "dynamo.mocker", "--model-path", dir, "--model-name", modelName)
	k.eventually(60*time.Second, "both are registered", func() bool { return k.endpoints("worker-0") == 2 && k.endpoints("worker-1") == 2 })
	workers := map[uint64]bool{}
	k.eventually(30*time.Second, "both serve", func() bool {
		workers[k.mustExplain(explained("who are you?", 4)).worker] = true
		return len(workers) == 2
	})
	if _, status := theirs.stop(30 * time.Second); status != 0 {
		t.Errorf("the reference ends with status %d", status)
	}
	for range 4 {
		k.mustChat("only one is left", 4)
	}
}
