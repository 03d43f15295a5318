package settings

import "gopkg.in/yaml.v3"

// decodeYAML reads a YAML text into maps, lists and plain values.
func decodeYAML(data []byte) (any, error) {
	var tree any
	err := yaml.Unmarshal(data, &tree)
	return tree, err
}
