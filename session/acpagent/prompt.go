package acpagent

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

// messageOf returns the message of a prompt. Files that the prompt names, or embeds as
// text, are parts of its text; images and other files are attached.
func messageOf(blocks []block) (m control.Message, err error) {
	var b strings.Builder
	for i, block := range blocks {
		switch {
		case block.Type == "text":
			b.WriteString(block.Text)
		case block.Type == "resource_link":
			b.WriteString(reference(cmp.Or(block.Name, block.URI), block.URI))
		case block.Type == "resource" && block.Resource != nil && block.Resource.Text != nil:
			separate(&b)
			b.WriteString("<context uri=\"" + attribute(block.Resource.URI) + "\">\n" + *block.Resource.Text)
			separate(&b)
			b.WriteString("</context>\n")
		case block.Type == "resource" && block.Resource != nil:
			err = attach(&m, &b, block.Resource.URI, block.Resource.Blob)
		case block.Type == "image":
			err = attach(&m, &b, block.URI, block.Data)
		default:
			err = invalid("it is of type %q, which was not offered", block.Type)
		}
		if err != nil {
			return m, invalid("block %d of the prompt: %v", i+1, err)
		}
	}
	if m.Text = b.String(); strings.TrimSpace(m.Text) == "" {
		return m, invalid("the prompt is empty")
	}
	return m, nil
}

// attach attaches a file, and names it at its place in the text.
func attach(m *control.Message, b *strings.Builder, uri, data string) error {
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("its data is not base64: %w", err)
	}
	if len(content) == 0 {
		return fmt.Errorf("it has no data")
	}
	file := agent.Attachment{Data: content}
	kind, extension, _ := strings.Cut(file.MediaType(), "/")
	if file.Name = path.Base(uri); uri == "" || strings.HasSuffix(uri, "/") {
		file.Name = fmt.Sprintf("%s-%d.%s", kind, len(m.Attachments)+1, extension)
	}
	for n := 2; slices.ContainsFunc(m.Attachments, func(a agent.Attachment) bool { return a.Name == file.Name }); n++ {
		file.Name = fmt.Sprintf("%d-%s", n, path.Base(uri))
	}
	m.Attachments = append(m.Attachments, file)
	b.WriteString("[" + file.Name + "]")
	return nil
}

// offers returns what the runtime of new sessions can be given.
func (c *connection) offers(ctx context.Context) (o registry.Options) {
	m, err := c.manager(ctx, control.Settings{Runtime: c.server.Start.Runtime, Workdir: "/"})
	if err != nil {
		return o
	}
	var rt registry.Runtime
	if token := c.server.Start.Runtime; token != "" {
		rt, _, err = registryOf(m).ParseToken(token)
	} else {
		r := m.Runner
		if r == nil {
			r = &runner.Runner{}
		}
		var selected runner.Selection
		selected, err = r.Resolve(ctx, "")
		rt = selected.Runtime
	}
	if err != nil || rt.Session == nil {
		return o
	}
	return rt.Session.Options
}

// separate begins a line.
func separate(b *strings.Builder) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
}

// reference returns the name of a file, as a link if they differ. The path of a local
// file is shown as agents read it.
func reference(name, uri string) string {
	if path, ok := strings.CutPrefix(uri, "file://"); ok {
		uri = path
	}
	if name == uri {
		return uri
	}
	return "[@" + name + "](" + uri + ")"
}

var quotes = strings.NewReplacer(`"`, "%22", "\n", "%0A", "\r", "%0D", "<", "%3C", ">", "%3E")

// attribute returns a URI that does not end the attribute that it is in.
func attribute(uri string) string { return quotes.Replace(uri) }
