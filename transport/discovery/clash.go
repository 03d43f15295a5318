package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Lister reads the records of a backend.
type Lister interface {
	List(ctx context.Context, bucket string) (map[string][]byte, error)
}

// CheckModel returns an error if a different model is registered at an endpoint already: one with another name that
// does not come from the same source either. Frontends would send both models' requests to the workers of both.
func CheckModel(ctx context.Context, l Lister, e Endpoint, card []byte) error {
	type names struct {
		Name   string `json:"display_name"`
		Source string `json:"source_path"`
	}
	var own names
	if err := json.Unmarshal(card, &own); err != nil {
		return fmt.Errorf("model card: %w", err)
	}
	records, err := l.List(ctx, Models)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(records)) {
		var other struct {
			Card names `json:"card_json"`
		}
		if !strings.HasPrefix(path, e.String()+"/") || json.Unmarshal(records[path], &other) != nil {
			continue
		}
		if o := other.Card; o.Name != own.Name && (o.Source == "" || o.Source != own.Source) {
			return fmt.Errorf("model name %q cannot be registered at endpoint %s, where the different model %q is registered already", own.Name, e, o.Name)
		}
	}
	return nil
}
