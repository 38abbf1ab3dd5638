package jobs

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// ProgressOf reads what a worker tells of its run, at a path; nil = nothing.
func ProgressOf(path string, p *wire.Progress) (*job.RunProgress, error) {
	if p == nil {
		return nil, nil
	}
	told := &job.RunProgress{Fraction: job.FractionUnset, Text: p.Text}
	if f := p.Fraction; f != nil {
		if told.Fraction = *f; !(*f >= 0 && *f <= 1) {
			return nil, refuse(path+".fraction", path+".fraction must be a number from 0 to 1")
		}
	}
	if len(p.Text) > job.ProgressTextMax {
		return nil, refuse(path+".text", path+".text must not be longer than "+strconv.Itoa(job.ProgressTextMax)+" bytes")
	}
	if len(p.Checkpoint) > 0 && string(p.Checkpoint) != "null" {
		if at, why := job.Unreadable(p.Checkpoint); why != "" {
			return nil, refuse(path+".checkpoint"+at, path+".checkpoint"+at+" "+why)
		}
		told.Checkpoint = payload(p.Checkpoint)
	}
	if len(told.Checkpoint) > job.CheckpointMax {
		return nil, refuse(path+".checkpoint", path+".checkpoint must not be larger than "+strconv.Itoa(job.CheckpointMax)+
			" bytes: keep what is large elsewhere, and its address here")
	}
	return told, nil
}

func appendProgress(b []byte, p *job.RunProgress) []byte {
	b = append(b, `,"progress":{`...)
	if p.Fraction != job.FractionUnset && !math.IsNaN(p.Fraction) {
		b = append(jsontext.AppendFloat(append(b, `"fraction":`...), p.Fraction, 64), ',')
	}
	if p.Text != "" {
		b = append(quote(b, `"text":`, p.Text), ',')
	}
	if p.Checkpoint != nil {
		b = append(append(append(b, `"checkpoint":`...), p.Checkpoint...), ',')
	}
	return append(number(b, `"at":`, int64(p.At)), '}')
}
