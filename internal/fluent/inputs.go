package fluent

import (
	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/connect/tail"
	"github.com/reprisehq/reprise/internal/plugin"
)

// inputs are what reads for each input that is declared.
var inputs = map[string]func(l *loader, v *plugin.Values, tag string) (connect.Source, error){
	"tail": func(l *loader, v *plugin.Values, tag string) (connect.Source, error) {
		return sourceOf(tail.New(tail.Options{
			Path: v.List("path"), ExcludePath: v.List("exclude_path"), Tag: tag, TagRegex: v.Text("tag_regex"),
			Key: v.Text("key"), PathKey: v.Text("path_key"), OffsetKey: v.Text("offset_key"),
			ReadFromHead: v.Flag("read_from_head"), SkipNewContent: !v.Flag("read_newly_discovered_files_from_head"),
			RefreshInterval: v.Span("refresh_interval"), RotateWait: v.Span("rotate_wait"), IgnoreOlder: v.Span("ignore_older"),
			BufferChunkSize: int(v.Size("buffer_chunk_size")), BufferMaxSize: int(v.Size("buffer_max_size")),
			SkipLongLines: v.Flag("skip_long_lines"), TruncateLongLines: v.Flag("truncate_long_lines"),
			SkipEmptyLines: v.Flag("skip_empty_lines"), ExitOnEOF: v.Flag("exit_on_eof"),
			Lines: l.linesOf(v, v.Text("key")), MultilineFlush: v.Span("multiline_flush"),
			Now: l.Now, Log: l.Log,
		}))
	},
}
