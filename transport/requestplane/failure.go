package requestplane

// Reason is one entry of the catalogue of failures that frontends know. It decides the client's HTTP status and whether
// the worker is taken out of routing.
type Reason struct {
	legacy  string // the older name, read by older frontends
	backend bool   // the older name stands under "Backend"
	class   string
	key     string
}

// Reasons that workers give.
var (
	InvalidArgument  = Reason{"InvalidArgument", false, "InvalidRequest", "request.invalid_argument"}
	Unclassified     = Reason{"Unknown", false, "Internal", "runtime.unclassified"}
	EngineShutdown   = Reason{"EngineShutdown", true, "Unavailable", "backend.engine_shutdown"}
	WorkerOverloaded = Reason{"ResourceExhausted", false, "CapacityExhausted", "capacity.worker_overloaded"}
)

// Failure is a reason with its texts. Diagnostic is for operators; Public, if not empty, is what the client is told.
type Failure struct {
	Reason     Reason
	Diagnostic string
	Public     string
}

func (f *Failure) Error() string { return f.Diagnostic }

// maxText is the longest text in bytes that frontends accept in a failure.
const maxText = 4096

const truncated = "...[truncated]"

func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	cut := maxText - len(truncated)
	for cut > 0 && s[cut]&0xc0 == 0x80 { // not inside a character
		cut--
	}
	return s[:cut] + truncated
}

// Encode writes the failure as an error object.
func (f *Failure) Encode(e *Encoder) {
	n := 4
	if f.Diagnostic != "" {
		n++
	}
	if f.Public != "" {
		n++
	}
	e.Map(n)
	e.Key("error_type")
	if f.Reason.backend {
		e.Map(1)
		e.Key("Backend")
		e.String(f.Reason.legacy)
		e.EndMap()
	} else {
		e.String(f.Reason.legacy)
	}
	encodeText(e, "class", f.Reason.class)
	encodeText(e, "reason", f.Reason.key)
	encodeText(e, "message", clip(f.Diagnostic))
	if f.Diagnostic != "" {
		encodeText(e, "diagnostic", clip(f.Diagnostic))
	}
	if f.Public != "" {
		e.Key("public")
		e.Map(2)
		encodeText(e, "type", "message")
		encodeText(e, "message", clip(f.Public))
		e.EndMap()
	}
	e.EndMap()
}

func encodeText(e *Encoder, key, value string) {
	e.Key(key)
	e.String(value)
}
