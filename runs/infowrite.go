package runs

import (
	"context"

	"go.yaml.in/yaml/v4"

	"github.com/busdk/bus-agent/internal/statefile"
)

// infoName is the file of an [Info].
const infoName = "run-info.yaml"

// marshalInfo returns an Info as the Agent Protocol's own writer does, without breaking
// lines.
func marshalInfo(info *Info) ([]byte, error) {
	return yaml.Dump(info, yaml.WithV3Defaults(), yaml.WithLineWidth(-1))
}

// updateInfo writes the Info of the run in a folder, under its lock.
func updateInfo(ctx context.Context, folder *statefile.Dir, info *Info) error {
	l, err := folder.Lock(ctx, infoName+".lock")
	if err != nil {
		return err
	}
	defer l.Remove()
	return writeInfo(folder, info)
}

// writeInfo replaces the file of an Info.
func writeInfo(folder *statefile.Dir, info *Info) error {
	text, err := marshalInfo(info)
	if err != nil {
		return err
	}
	return folder.Replace(infoName, text)
}
