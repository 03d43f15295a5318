package flags

var workerFlags = []*Flag{
	{Name: "--disaggregation-mode", Kind: String, Arg: "ROLE", Allowed: []string{"agg", "prefill", "decode"}, Group: GroupDisagg,
		Help: "Role of the workers (agg)."},
	{Name: "--is-prefill-worker", Group: GroupDisagg, Help: "Deprecated, use --disaggregation-mode prefill."},
	{Name: "--is-decode-worker", Group: GroupDisagg, Help: "Deprecated, use --disaggregation-mode decode."},
	{Name: "--bootstrap-ports", Kind: String, Arg: "PORT,...", Group: GroupDisagg, Help: "Bootstrap port of each prefill worker."},
	{Name: "--kv-transfer-bandwidth", Kind: Float, Arg: "GBPS", Group: GroupDisagg, Field: "engine.kv_transfer_bandwidth",
		Help: "Bandwidth of KV transfers in GB/s; 0 means no delay."},
	{Name: "--kv-transfer-timing-mode", Kind: String, Arg: "MODE", Default: "full_prompt", Group: GroupDisagg,
		Field: "engine.kv_transfer_timing_mode", Help: "What a transfer moves: full_prompt or destination_missing."},

	{Name: "--num-workers", Kind: Int, Arg: "N", Default: "1", Group: GroupWorkers, Help: "Workers in this process."},
	{Name: "--stagger-delay", Kind: Float, Arg: "SECONDS", Default: "0", Group: GroupWorkers,
		Help: "Pause between worker starts; -1 chooses by their number."},
	{Name: "--zmq-kv-events-ports", Kind: String, Arg: "PORT,...", Group: GroupWorkers, Help: "Publish KV events on the vLLM wire, one base port a worker."},
	{Name: "--zmq-replay-ports", Kind: String, Arg: "PORT,...", Group: GroupWorkers, Help: "Answer replay requests of the vLLM wire; needs --zmq-kv-events-ports."},
	{Name: "--discovery-backend", Kind: String, Arg: "NAME", Allowed: []string{"kubernetes", "etcd", "file", "mem"}, Default: "etcd",
		Env: []string{"DYN_DISCOVERY_BACKEND"}, Group: GroupWorkers, Help: "How frontends find the workers. If nothing is said, etcd if ETCD_ENDPOINTS is set or a server answers at localhost:2379, else mem."},
	{Name: "--reregister", Off: []string{"--no-reregister"}, Group: GroupWorkers, Ours: true,
		Help: "A worker whose etcd lease is lost takes a new one; the default with the screen. Without, the run ends."},
	{Name: "--request-plane", Kind: String, Arg: "NAME", Allowed: []string{"nats", "tcp"}, Default: "tcp", Env: []string{"DYN_REQUEST_PLANE"},
		Group: GroupWorkers, Help: "How requests arrive."},
	{Name: "--response-plane", Kind: String, Arg: "NAME", Allowed: []string{"tcp", "quic"}, Default: "tcp", Env: []string{"DYN_RESPONSE_PLANE"},
		Group: GroupWorkers, Help: "How responses travel; must be the frontend's."},
	{Name: "--event-plane", Kind: String, Arg: "NAME", Allowed: []string{"nats", "zmq"}, Env: []string{"DYN_EVENT_PLANE"}, Group: GroupWorkers,
		Help: "How KV events travel (zmq)."},
	{Name: "--embedded-nats", Group: GroupWorkers, Ours: true,
		Help: "Run a NATS server in this process, where NATS_SERVER says (localhost:4222)."},
}

// runFlags are the flags of this program alone.
var runFlags = []*Flag{
	{Name: "--profile", Kind: String, Arg: "NAME|FILE", Group: GroupRun, Ours: true,
		Help: "Settings from a TOML profile; demo is built in and used if no flag of a worker is given."},
	{Name: "--duration", Kind: String, Arg: "TIME", Group: GroupRun, Ours: true, Help: "End the run after this time, for example 30s or 2m."},
	{Name: "--requests", Kind: Int, Arg: "N", Group: GroupRun, Ours: true, Help: "End the run after this many requests."},
	{Name: "--report", Kind: String, Arg: "FILE|-", Group: GroupRun, Ours: true, Help: "Write the report of the run as JSON; - is stdout."},
	{Name: "--seed", Kind: Int, Arg: "N", Default: "1", Group: GroupRun, Ours: true, Help: "Seed of request ids, tokens and the built-in load."},
	{Name: "--strict", Group: GroupRun, Ours: true, Help: "Treat warnings about settings without effect as errors."},
	{Name: "--reference-quirks", Group: GroupRun, Ours: true,
		Help: "Behave like the reference also where that harms its users."},

	{Name: "--tui", Group: GroupScreen, Ours: true, Help: "Insist on the screen; an error without a terminal."},
	{Name: "--no-tui", Group: GroupScreen, Ours: true, Help: "No screen; the default without a terminal."},
	{Name: "--fps", Kind: Int, Arg: "N", Default: "10", Group: GroupScreen, Ours: true, Help: "Frames a second, 1 to 60."},
	{Name: "--no-color", Group: GroupScreen, Ours: true, Help: "No colour; also NO_COLOR in the environment."},
	{Name: "--no-mouse", Group: GroupScreen, Ours: true, Help: "Leave the mouse to the terminal."},
	{Name: "--progress", Kind: String, Arg: "TIME", Group: GroupScreen, Ours: true,
		Help: "Time between progress lines without a screen; 0 means none (1s on a terminal, else 10s)."},
	{Name: "--quiet", Group: GroupScreen, Ours: true, Help: "Without a screen print only warnings and the summary."},
	{Name: "--log-file", Kind: String, Arg: "FILE", Group: GroupScreen, Ours: true, Help: "Write the log to a file as well."},
}
