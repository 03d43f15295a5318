package discovery

// Names of the backends.
const (
	MemoryBackend     = "mem"
	FileBackend       = "file"
	EtcdBackend       = "etcd"
	KubernetesBackend = "kubernetes"
)

// Choice is a backend and the reason for it, a clause that fits behind "discovery: etcd, ".
type Choice struct{ Backend, Why string }

// Choose picks the backend of a process that was told none: etcd if there are signs of a server, else the memory of the
// process. endpoints is the value of ETCD_ENDPOINTS; answers reports whether an etcd server answers at fallback, the
// default endpoint, and is asked only if need be.
func Choose(endpoints, fallback string, answers func() bool) Choice {
	switch {
	case endpoints != "":
		return Choice{EtcdBackend, "because ETCD_ENDPOINTS is set"}
	case answers():
		return Choice{EtcdBackend, "because a server answers at " + fallback}
	}
	return Choice{MemoryBackend, "because --discovery-backend, DYN_DISCOVERY_BACKEND and ETCD_ENDPOINTS are not set and no etcd server answers at " +
		fallback + ": frontends cannot find these workers"}
}
