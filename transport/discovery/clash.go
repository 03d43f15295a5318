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

// CheckModel returns an error if a different model than the one of this name and source is registered at an endpoint
// already: one with another name that does not come from the same source either. Frontends would send both models'
// requests to the workers of both. source may be empty.
func CheckModel(ctx context.Context, l Lister, e Endpoint, name, source string) error {
	records, err := l.List(ctx, Models)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(records)) {
		var other struct {
			Card struct {
				Name   string `json:"display_name"`
				Source string `json:"source_path"`
			} `json:"card_json"`
		}
		if !strings.HasPrefix(path, e.String()+"/") || json.Unmarshal(records[path], &other) != nil {
			continue
		}
		if o := other.Card; o.Name != name && (o.Source == "" || o.Source != source) {
			return fmt.Errorf("model name %q cannot be registered at endpoint %s, where the different model %q is registered already", name, e, o.Name)
		}
	}
	return nil
}
