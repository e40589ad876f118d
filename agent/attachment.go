package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Attachment is a file that the model gets with a prompt: an image, a PDF, or text.
// Text becomes part of the prompt, see [AttachmentText], and works with every runtime.
// Anything else is passed on as it is, by runtimes that support its media type.
type Attachment struct {
	// Name is what the model knows the file by, without folders. Required.
	Name string `json:"name"`
	// Data is the content. It must not be changed while it is in use.
	Data []byte `json:"data"`
}

// Limits of the attachments of one prompt.
const (
	MaxAttachments     = 32       // files
	MaxAttachmentBytes = 10 << 20 // of one file
	MaxAttachedBytes   = 20 << 20 // of all files
)

// The media types of attachments.
const (
	MediaPNG  = "image/png"
	MediaJPEG = "image/jpeg"
	MediaGIF  = "image/gif"
	MediaWebP = "image/webp"
	MediaPDF  = "application/pdf"
	MediaText = "text/plain"
)

// ImageTypes returns the media types of images.
func ImageTypes() []string { return []string{MediaPNG, MediaJPEG, MediaGIF, MediaWebP} }

// signatures are the beginnings of files by which their types are known.
var signatures = []struct{ begin, media string }{
	{"\x89PNG\r\n\x1a\n", MediaPNG},
	{"\xff\xd8\xff", MediaJPEG},
	{"GIF87a", MediaGIF},
	{"GIF89a", MediaGIF},
	{"%PDF-", MediaPDF},
}

// MediaType returns the media type, which the content alone decides. It is MediaText for
// UTF-8 text without NUL, and "" for what cannot be attached.
func (a Attachment) MediaType() string {
	for _, s := range signatures {
		if bytes.HasPrefix(a.Data, []byte(s.begin)) {
			return s.media
		}
	}
	switch {
	case len(a.Data) >= 12 && string(a.Data[:4]) == "RIFF" && string(a.Data[8:12]) == "WEBP":
		return MediaWebP
	case utf8.Valid(a.Data) && !bytes.ContainsRune(a.Data, 0):
		return MediaText
	}
	return ""
}

// Info describes the attachment without its content.
func (a Attachment) Info() AttachmentInfo {
	sum := sha256.Sum256(a.Data)
	return AttachmentInfo{Name: a.Name, MediaType: a.MediaType(), Size: len(a.Data), SHA256: hex.EncodeToString(sum[:])}
}

// AttachmentInfo describes an [Attachment] in records.
type AttachmentInfo struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Size      int    `json:"size"` // in bytes
	SHA256    string `json:"sha256"`
}

// String returns one line for users.
func (i AttachmentInfo) String() string {
	return fmt.Sprintf("%s (%s, %d bytes, sha256 %s)", i.Name, i.MediaType, i.Size, i.SHA256)
}

// AttachmentInfos returns the infos of list; nil for an empty one.
func AttachmentInfos(list []Attachment) (infos []AttachmentInfo) {
	for _, a := range list {
		infos = append(infos, a.Info())
	}
	return infos
}

// CheckAttachments returns an [ErrUsage] error if list is over a limit, or has a file
// with a bad name, without content, or that is neither an image, a PDF nor text. If a
// file other than text has a media type that is not among takes, the error is that of
// refuse, if refuse is not nil.
func CheckAttachments(list []Attachment, takes []string, refuse func(a Attachment) error) error {
	if len(list) > MaxAttachments {
		return Usagef("%d files are attached; the limit is %d", len(list), MaxAttachments)
	}
	total := 0
	for _, a := range list {
		total += len(a.Data)
		media := a.MediaType()
		switch {
		case a.Name == "" || len(a.Name) > 255 || !utf8.ValidString(a.Name) || strings.ContainsAny(a.Name, `/\`) || strings.ContainsFunc(a.Name, unicode.IsControl):
			return Usagef("attachment %q: the name must be that of a file, without folders or control characters", a.Name)
		case len(a.Data) == 0:
			return Usagef("attachment %q is empty", a.Name)
		case len(a.Data) > MaxAttachmentBytes:
			return Usagef("attachment %q is larger than %d MiB", a.Name, MaxAttachmentBytes>>20)
		case total > MaxAttachedBytes:
			return Usagef("the attachments are larger than %d MiB together", MaxAttachedBytes>>20)
		case media == "":
			return Usagef("attachment %q is neither an image (PNG, JPEG, GIF or WebP), a PDF nor UTF-8 text", a.Name)
		case media != MediaText && refuse != nil && !slices.Contains(takes, media):
			return refuse(a)
		}
	}
	return nil
}

// AttachmentText returns the text that precedes the prompt of a model that gets list: the
// name of each file in order, and the content of those that are text. It is "" for an
// empty list.
//
//	Attached: chart.png (image/png)
//	Attached: notes.txt, which ends before the line "----- end of notes.txt -----"
//	first line
//	last line
//	----- end of notes.txt -----
//
// An empty line follows. The last line of a file always gets a line break. The dashes of
// its end are so many that no line of the content is equal to it.
func AttachmentText(list []Attachment) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	for _, a := range list {
		media := a.MediaType()
		if media != MediaText {
			fmt.Fprintf(&b, "Attached: %s (%s)\n", a.Name, media)
			continue
		}
		end := endLine(a)
		fmt.Fprintf(&b, "Attached: %s, which ends before the line %q\n%s", a.Name, end, a.Data)
		if !bytes.HasSuffix(a.Data, []byte("\n")) {
			b.WriteString("\n")
		}
		b.WriteString(end + "\n")
	}
	return b.String() + "\n"
}

// endLine returns a line that is not part of the text of a.
func endLine(a Attachment) string {
	middle, count := []byte(" end of "+a.Name+" "), 5
	for left := a.Data; ; {
		i := bytes.Index(left, middle)
		if i < 0 {
			break
		}
		before, after := left[:i], left[i+len(middle):]
		around := min(len(before)-len(bytes.TrimRight(before, "-")), len(after)-len(bytes.TrimLeft(after, "-")))
		count = max(count, around+1)
		left = left[i+1:]
	}
	dashes := strings.Repeat("-", count)
	return dashes + string(middle) + dashes
}

// Files returns those of list that are not text.
func Files(list []Attachment) (files []Attachment) {
	for _, a := range list {
		if a.MediaType() != MediaText {
			files = append(files, a)
		}
	}
	return files
}
