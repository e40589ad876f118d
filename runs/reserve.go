package runs

import (
	"context"
	"crypto/rand"
	"strings"
)

// The reserve of a run is a file that takes the room for its last Info, so that the end
// of the run can be recorded on a full disk.
const (
	reserveName = infoName + ".reserve.part"
	reserveSize = 32 << 10
)

// makeReserve makes the reserve.
func (r *record) makeReserve() (err error) {
	if r.reserve, err = r.folder.Create(reserveName); err != nil {
		return err
	}
	fill := make([]byte, reserveSize)
	_, _ = rand.Read(fill) // it never fails; some file systems do not store zeros
	if _, err = r.reserve.Write(fill); err != nil {
		_ = r.reserve.Close()
	}
	return err
}

// writeEnd writes the Info of a run that is over, into the reserve if it does not fit
// elsewhere.
func (r *record) writeEnd(ctx context.Context) {
	if r.problem != nil {
		r.info.RecordProblem = r.mask.Text(r.problem.Error())
	}
	err := updateInfo(ctx, r.folder, &r.info)
	if err == nil {
		return
	}
	_ = r.note(err)
	r.info.RecordProblem = r.mask.Text(r.problem.Error())
	if r.fillReserve() == nil {
		return
	}
	_ = r.folder.Remove(reserveName) // a file system can need new room for each write
	_ = writeInfo(r.folder, &r.info)
}

// fillReserve makes the reserve the file of the Info.
func (r *record) fillReserve() error {
	text, err := fitInfo(r.info, reserveSize)
	if err == nil {
		_, err = r.reserve.WriteAt(text, 0)
	}
	if err == nil {
		err = r.reserve.Truncate(int64(len(text)))
	}
	if err == nil {
		err = r.reserve.Sync()
	}
	if err == nil {
		err = r.folder.Rename(reserveName, infoName)
	}
	return err
}

// dropReserve removes the reserve, if it was not used.
func (r *record) dropReserve() {
	_ = r.folder.Remove(reserveName)
	_ = r.reserve.Close()
}

// fitInfo returns the text of an Info, without its longest texts if it is longer than
// limit.
func fitInfo(info Info, limit int) (text []byte, err error) {
	const most = 1 << 10
	for _, shorten := range []func(){
		func() {},
		func() { info.Warnings = nil },
		func() { info.CommandLine = "" },
		func() { info.Error, info.RecordProblem = cutText(info.Error, most), cutText(info.RecordProblem, most) },
	} {
		shorten()
		if text, err = marshalInfo(&info); err != nil || len(text) <= limit {
			break
		}
	}
	return text, err
}

// cutText returns the beginning of a text that is long.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
