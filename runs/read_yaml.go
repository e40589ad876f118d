package runs

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// The limits of texts for the YAML library: its time grows with the square of the keys of
// a mapping, and an alias can expand to any amount of text.
const (
	maxYAML      = 256 << 10 // bytes
	maxYAMLNodes = 20_000
	maxYAMLKeys  = 1_000 // of one mapping
	maxYAMLDepth = 16
)

// loadYAML reads a YAML text into a struct and ignores unknown keys.
func loadYAML(text []byte, into any) error {
	if len(text) > maxYAML {
		return fmt.Errorf("more than %d KiB of YAML that is not plain", maxYAML>>10)
	}
	var root yaml.Node
	if err := yaml.Load(text, &root, yaml.WithV3Defaults()); err != nil {
		return err
	}
	left := maxYAMLNodes
	if err := checkNode(&root, maxYAMLDepth, &left); err != nil {
		return err
	}
	return root.Load(into, yaml.WithV3Defaults())
}

func checkNode(n *yaml.Node, depth int, left *int) error {
	*left--
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return errors.New("it has anchors or aliases")
	case depth == 0:
		return fmt.Errorf("it is nested more than %d levels", maxYAMLDepth)
	case *left < 0:
		return fmt.Errorf("it has more than %d values", maxYAMLNodes)
	case n.Kind == yaml.MappingNode && len(n.Content) > 2*maxYAMLKeys:
		return fmt.Errorf("it has more than %d keys", maxYAMLKeys)
	}
	for _, below := range n.Content {
		if err := checkNode(below, depth-1, left); err != nil {
			return err
		}
	}
	return nil
}
