package acpagent

import (
	"cmp"
	"strings"
)

// messageOf returns the text of a prompt. Files that it names or embeds are parts of the
// text.
func messageOf(blocks []block) (string, error) {
	var b strings.Builder
	for i, block := range blocks {
		switch block.Type {
		case "text":
			b.WriteString(block.Text)
		case "resource_link":
			b.WriteString(reference(cmp.Or(block.Name, block.URI), block.URI))
		case "resource":
			if block.Resource == nil || block.Resource.Text == nil {
				return "", invalid("block %d of the prompt is a resource without text, which was not offered", i+1)
			}
			separate(&b)
			b.WriteString("<context uri=\"" + attribute(block.Resource.URI) + "\">\n" + *block.Resource.Text)
			separate(&b)
			b.WriteString("</context>\n")
		default:
			return "", invalid("block %d of the prompt is of type %q, which was not offered", i+1, block.Type)
		}
	}
	if strings.TrimSpace(b.String()) == "" {
		return "", invalid("the prompt is empty")
	}
	return b.String(), nil
}

// separate begins a line.
func separate(b *strings.Builder) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
}

// reference returns the name of a file, as a link where they differ. The path of a local file is shown
// as agents read it.
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
