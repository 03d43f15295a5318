package bootstrap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Identity names a session; every frame of a connection repeats it.
type Identity struct {
	Handoff uuid.UUID `json:"handoff_id"`
	Room    uint64    `json:"bootstrap_room"`
	Request uuid.UUID `json:"request_id"`
}

// Message is one of the types below.
type Message interface{ message() }

// Messages. Those of the destination are Register, ActionAck, DestinationReserved and Abort; those of the source are the
// others and Abort.
type (
	// Register introduces a destination; it is the first frame of a connection.
	Register struct {
		Role   string `json:"role"` // always "Destination"
		Rank   int    `json:"dp_rank"`
		Order  Order  `json:"order"`
		Engine string `json:"engine_type"`
	}
	Registered struct{}

	// ActionRequest asks the destination to act.
	ActionRequest struct {
		ID      uint64
		Kind    ActionKind
		Handoff uuid.UUID
	}
	ActionAck struct {
		ID      uint64  `json:"action_id"`
		Outcome Outcome `json:"outcome"`
	}
	SourceHeld struct {
		Handoff uuid.UUID `json:"handoff_id"`
		Timing  Timing    `json:"transfer_timing"`
	}
	DestinationReserved struct {
		Handoff uuid.UUID `json:"handoff_id"`
		Tokens  int       `json:"transferable_prompt_tokens"`
	}
	Complete      struct{}
	Overloaded    struct{}
	Abort         struct{ Message string }
	ProtocolError struct{ Message string }
)

func (Register) message()            {}
func (Registered) message()          {}
func (ActionRequest) message()       {}
func (ActionAck) message()           {}
func (SourceHeld) message()          {}
func (DestinationReserved) message() {}
func (Complete) message()            {}
func (Overloaded) message()          {}
func (Abort) message()               {}
func (ProtocolError) message()       {}

// destinationRole is the only role that registers.
const destinationRole = "Destination"

// object has one key.
func object(key string, value any) any { return map[string]any{key: value} }

type reason struct {
	Message string `json:"message"`
}

type target struct {
	Handoff uuid.UUID `json:"handoff_id"`
}

type actionBody struct {
	ID     uint64                `json:"id"`
	Action map[ActionKind]target `json:"action"`
}

// encodable returns what stands for a message in JSON.
func encodable(m Message) any {
	switch m := m.(type) {
	case Register:
		return object("Register", m)
	case Registered:
		return "Registered"
	case ActionRequest:
		return object("Action", actionBody{m.ID, map[ActionKind]target{m.Kind: {m.Handoff}}})
	case ActionAck:
		return object("ActionAck", m)
	case SourceHeld:
		return object("Fact", object("SourceHeld", m))
	case DestinationReserved:
		return object("Fact", object("DestinationReserved", m))
	case Complete:
		return "Complete"
	case Overloaded:
		return "Overloaded"
	case Abort:
		return object("Abort", reason(m))
	case ProtocolError:
		return object("ProtocolError", reason(m))
	}
	panic(fmt.Sprintf("bootstrap: %T is no message", m))
}

// variant takes a value apart that is a name, or an object whose one key is the name.
func variant(raw json.RawMessage) (name string, body json.RawMessage, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) {
		return name, nil, json.Unmarshal(raw, &name)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", nil, err
	}
	if len(m) != 1 {
		return "", nil, fmt.Errorf("%d keys where one names the variant", len(m))
	}
	for name, body = range m {
	}
	return name, body, nil
}

// decodeMessage reads a message.
func decodeMessage(raw json.RawMessage) (Message, error) {
	name, body, err := variant(raw)
	if err != nil {
		return nil, err
	}
	switch name {
	case "Registered":
		return Registered{}, nil
	case "Complete":
		return Complete{}, nil
	case "Overloaded":
		return Overloaded{}, nil
	case "Register":
		return decodeRegister(body)
	case "Action":
		return decodeAction(body)
	case "ActionAck":
		return decode[ActionAck](body)
	case "Fact":
		return decodeFact(body)
	case "Abort":
		r, err := decode[reason](body)
		return Abort(r), err
	case "ProtocolError":
		r, err := decode[reason](body)
		return ProtocolError(r), err
	}
	return nil, fmt.Errorf("unknown message %.40q", name)
}

func decode[T any](body json.RawMessage) (v T, err error) {
	if body == nil {
		return v, fmt.Errorf("the message has no body")
	}
	err = json.Unmarshal(body, &v)
	return v, err
}

func decodeRegister(body json.RawMessage) (Message, error) {
	r, err := decode[Register](body)
	if err == nil && r.Role != destinationRole {
		err = fmt.Errorf("unknown role %.40q", r.Role)
	}
	return r, err
}

func decodeAction(body json.RawMessage) (Message, error) {
	a, err := decode[struct {
		ID     uint64          `json:"id"`
		Action json.RawMessage `json:"action"`
	}](body)
	if err != nil {
		return nil, err
	}
	name, inner, err := variant(a.Action)
	if err != nil {
		return nil, err
	}
	t, err := decode[target](inner)
	return ActionRequest{ID: a.ID, Kind: ActionKind(name), Handoff: t.Handoff}, err
}

func decodeFact(body json.RawMessage) (Message, error) {
	name, inner, err := variant(body)
	if err != nil {
		return nil, err
	}
	switch name {
	case "SourceHeld":
		return decode[SourceHeld](inner)
	case "DestinationReserved":
		return decode[DestinationReserved](inner)
	}
	return nil, fmt.Errorf("unknown fact %.40q", name)
}

// Outcome says what became of an action.
type Outcome struct {
	Kind string // Submitted, Accepted, Scheduled, Applied, Noop or Failed
	Text string // of Failed
}

// Outcomes without a text.
var (
	Submitted = Outcome{Kind: "Submitted"}
	Accepted  = Outcome{Kind: "Accepted"}
	Scheduled = Outcome{Kind: "Scheduled"}
	Applied   = Outcome{Kind: "Applied"}
	Noop      = Outcome{Kind: "Noop"}
)

const failed = "Failed"

// Failed is the outcome of an action that could not be done.
func Failed(text string) Outcome { return Outcome{Kind: failed, Text: text} }

// MarshalJSON writes the name, or an object for a failure.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if o.Kind == failed {
		return compact(object(failed, o.Text))
	}
	return compact(o.Kind)
}

// UnmarshalJSON reads either form.
func (o *Outcome) UnmarshalJSON(raw []byte) error {
	name, body, err := variant(raw)
	if err != nil {
		return err
	}
	o.Kind, o.Text = name, ""
	if name == failed && body != nil {
		return json.Unmarshal(body, &o.Text)
	}
	return nil
}

// decimal is a number that is written with a decimal point.
type decimal float64

// MarshalJSON writes the shortest text that reads as the same number.
func (d decimal) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(d), 'g', -1, 64)
	if !strings.ContainsAny(text, ".eIN") {
		text += ".0"
	}
	return []byte(text), nil
}

// compact is JSON without escapes for HTML.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
