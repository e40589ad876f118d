package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// A File is an image or another file in a message to the model, with its content.
type File struct {
	// MediaType is as the request has it, for example "image/png".
	MediaType string
	Data      []byte
}

// contentParts is the content of a message: the texts and the files of a list of parts,
// or one text. It reads the parts of every provider.
type contentParts struct {
	texts []string
	files []File
}

// contentPart has the members of a part that are texts or files. No provider gives a
// member of another the same name and another form, except image_url.
type contentPart struct {
	Text *string `json:"text"`

	// Anthropic: {"type":"image","source":{"type":"base64","media_type":"image/png","data":"..."}}
	Source *struct {
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`

	// OpenAI: {"image_url":"data:..."} or {"image_url":{"url":"data:..."}}, and
	// {"file_data":"data:..."} or {"file":{"file_data":"data:..."}}
	ImageURL dataURL `json:"image_url"`
	FileData dataURL `json:"file_data"`
	File     struct {
		FileData dataURL `json:"file_data"`
	} `json:"file"`

	// Gemini: {"inlineData":{"mimeType":"image/png","data":"..."}}
	Inline *inlineData `json:"inlineData"`
}

type inlineData struct {
	MediaType string `json:"mimeType"`
	Data      string `json:"data"`
}

// dataURL is a URL with a file in it, or an object with that URL.
type dataURL string

func (u *dataURL) UnmarshalJSON(data []byte) error {
	var object struct {
		URL string `json:"url"`
	}
	if len(data) > 0 && data[0] == '{' {
		err := json.Unmarshal(data, &object)
		*u = dataURL(object.URL)
		return err
	}
	return json.Unmarshal(data, (*string)(u))
}

// file returns the file in the part, if it has one.
func (p *contentPart) file() (f File, ok bool) {
	var encoded string
	switch {
	case p.Source != nil:
		f.MediaType, encoded = p.Source.MediaType, p.Source.Data
	case p.Inline != nil:
		f.MediaType, encoded = p.Inline.MediaType, p.Inline.Data
	default:
		url := string(p.ImageURL + p.FileData + p.File.FileData) // at most one is set
		about, data, found := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
		if !found {
			return f, false
		}
		f.MediaType, encoded = about, data
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		decoded = []byte(encoded) // the text of a document
	}
	f.Data = decoded
	return f, true
}

func (c *contentParts) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*c = contentParts{texts: []string{text}}
		return nil
	}
	var parts []contentPart
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for i := range parts {
		c.add(&parts[i])
	}
	return nil
}

func (c *contentParts) add(p *contentPart) {
	if p.Text != nil {
		c.texts = append(c.texts, *p.Text)
	}
	if f, ok := p.file(); ok {
		c.files = append(c.files, f)
	}
}

func (c *contentParts) empty() bool { return len(c.texts)+len(c.files) == 0 }

// message returns the content as a message of a role.
func (c *contentParts) message(role string) Message {
	return Message{Role: role, Texts: c.texts, Files: c.files}
}
