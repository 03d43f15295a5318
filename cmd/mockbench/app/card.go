package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mockbench/cmd/mockbench/settings"
	"mockbench/engine"
	"mockbench/transport/modelcard"
	"mockbench/transport/requestplane"
)

// findModel returns the directory of the model: the given one, or the one that comes with the program.
func findModel(m settings.Model) (modelcard.Model, error) {
	if m.Path != "" {
		return modelcard.Resolve(m.Path, os.Getenv)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = ""
	}
	return modelcard.Builtin(cache)
}

// modelError names the flag in an error about the model.
func modelError(err error) error {
	var s *engine.SettingError
	if errors.As(err, &s) && s.Setting == "model_path" {
		s.Setting = "--model-path"
	}
	return err
}

// makeCard makes the model card of the workers of a pool, which differ in their bootstrap port alone.
func (s *serving) makeCard(p *pool) (*modelcard.Card, error) {
	o, err := cardOptions(s.p.s, p.Pool, s.model)
	if err != nil {
		return nil, err
	}
	if err := s.selfHost(p, &o); err != nil {
		return nil, err
	}
	card, err := newCard(s.p.s, o)
	if err != nil {
		return nil, err
	}
	if o.SelfHost != "" {
		s.offerFiles(p, o, card)
	}
	return card, nil
}

// Cards makes the model cards of the pools of a run that is not started: without an address of its own to fetch files from.
func Cards(s *settings.Settings) ([]*modelcard.Card, error) {
	model, err := findModel(s.Model)
	if err != nil {
		return nil, modelError(err)
	}
	var list []*modelcard.Card
	for i := range s.Pools {
		o, err := cardOptions(s, &s.Pools[i], model)
		if err != nil {
			return nil, err
		}
		card, err := newCard(s, o)
		if err != nil {
			return nil, modelError(err)
		}
		list = append(list, card)
	}
	return list, nil
}

// newCard makes a card; a name that was given as empty stays so.
func newCard(s *settings.Settings, o modelcard.Options) (*modelcard.Card, error) {
	card, err := modelcard.New(o)
	if err == nil && s.Model.NoName {
		card.DisplayName, card.Slug = "", ""
	}
	return card, err
}

// cardOptions describes the workers of a pool.
func cardOptions(s *settings.Settings, p *settings.Pool, model modelcard.Model) (modelcard.Options, error) {
	l := p.Launch
	topology, err := modelcard.ReadTopology(os.Getenv)
	if err != nil {
		return modelcard.Options{}, err
	}
	o := modelcard.Options{Model: model, Name: s.Model.Name, Engine: l.Engine, Role: p.Role, Ranks: int(l.DPSize),
		LocalIndexer: l.Dynamo.EnableLocalIndexer, SGLangGenerate: s.SGLangGenerate, Topology: topology, StableRoutingID: os.Getenv("DYN_STABLE_ROUTING_ID")}
	if s.Model.Path == "" && o.Name == "" {
		o.Name = modelcard.BuiltinName
	}
	if s.Router != nil {
		o.Router, err = json.Marshal(s.Router.Card())
	}
	return o, err
}

// selfHost makes the card point at the status server for the model's files, so that a frontend on another machine gets
// them; without that server it points at the files.
func (s *serving) selfHost(p *pool, o *modelcard.Options) error {
	if s.status == nil || falsy(os.Getenv("DYN_SELF_HOST_METADATA")) {
		return nil
	}
	address, err := statusAddress(s.status.Port())
	o.SelfHost = "http://" + address + p.filePath(s.name())
	return err
}

// filePath is where the status server offers the model's files.
func (p *pool) filePath(name string) string {
	return fmt.Sprintf("/v1/metadata/%s/%s/_base/", p.endpoint, modelcard.Slug(name))
}

// offerFiles makes the status server serve every file the card names.
func (s *serving) offerFiles(p *pool, o modelcard.Options, card *modelcard.Card) {
	for _, f := range card.Files() {
		if name, ok := strings.CutPrefix(f.Path, o.SelfHost); ok {
			s.status.ServeFile(p.filePath(card.DisplayName), filepath.Join(s.model.Dir, name))
		}
	}
}

func falsy(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "0", "false", "no", "off":
		return true
	}
	return false
}

// statusAddress returns the host:port under which others reach the status server.
func statusAddress(port int) (string, error) {
	_, advertise, err := requestplane.ResolveHost(os.Getenv("DYN_SYSTEM_HOST"))
	if err != nil {
		return "", fmt.Errorf("DYN_SYSTEM_HOST: %w", err)
	}
	return net.JoinHostPort(advertise.String(), strconv.Itoa(port)), nil
}
