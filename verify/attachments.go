package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

// attachedText is the content of a text file. It has an end like that of its block.
const attachedText = "résumé 日本語\r\n\ttab\n----- end of notes.txt -----\nlast line"

// notes is an attached text file.
func notes() agent.Attachment {
	return agent.Attachment{Name: "notes.txt", Data: []byte(attachedText)}
}

// samples returns a small file of each media type but text.
func samples() []agent.Attachment {
	picture := image.NewPaletted(image.Rect(0, 0, 32, 24), color.Palette{color.Black, color.White, color.RGBA{200, 40, 90, 255}})
	for i := range picture.Pix {
		picture.Pix[i] = uint8(i * i % 3)
	}
	encoded := func(name string, encode func(*bytes.Buffer) error) agent.Attachment {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			panic(err) // the picture is valid
		}
		return agent.Attachment{Name: name, Data: b.Bytes()}
	}
	return []agent.Attachment{
		encoded("chart.png", func(b *bytes.Buffer) error { return png.Encode(b, picture) }),
		encoded("photo.jpg", func(b *bytes.Buffer) error { return jpeg.Encode(b, picture, nil) }),
		encoded("loop.gif", func(b *bytes.Buffer) error { return gif.Encode(b, picture, nil) }),
		encoded("icon.webp", func(b *bytes.Buffer) error {
			const pixel = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
			data, err := base64.StdEncoding.DecodeString(pixel)
			b.Write(data)
			return err
		}),
		{Name: "paper.pdf", Data: []byte("%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
			"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n")},
	}
}

// sampled returns the samples whose media types are among takes, or are not.
func sampled(takes []string, want bool) []agent.Attachment {
	return slices.DeleteFunc(samples(), func(a agent.Attachment) bool { return slices.Contains(takes, a.MediaType()) != want })
}

func attaches(_ *Target, rt *registry.Runtime) string {
	return unless(len(use(rt).Options.Attachments) > 0, "the runtime passes only text to its model; other files are refused")
}

func refusesFiles(_ *Target, rt *registry.Runtime) string {
	return unless(len(sampled(use(rt).Options.Attachments, false)) > 0, "the runtime passes every file to its model")
}

// attachText checks that a text file arrives whole before the prompt.
func attachText(t *trial) error {
	if err := t.start(modeltest.Replies(says("got it")), nil); err != nil {
		return err
	}
	files := []agent.Attachment{notes()}
	_, request, err := t.askOnce(agent.Request{Prompt: "what is in it?", Attachments: files}, "got it")
	if err != nil {
		return err
	}
	if got, want := t.lastPrompt(request), agent.AttachmentText(files)+"what is in it?"; got != want {
		return fmt.Errorf("the model got %s instead of %s", quote(got), quote(want))
	}
	return nil
}

// attachFiles checks that a file of each type that the runtime supports arrives unchanged.
func attachFiles(t *trial) error {
	if err := t.start(modeltest.Replies(says("got it")), nil); err != nil {
		return err
	}
	files := sampled(use(&t.runtime).Options.Attachments, true)
	_, request, err := t.askOnce(agent.Request{Prompt: "what is in them?", Attachments: files}, "got it")
	if err != nil {
		return err
	}
	return gotFiles(request, files)
}

// gotFiles checks that a request has the files, in any order, and their names.
func gotFiles(r *modeltest.Request, want []agent.Attachment) error {
	left := r.Files()
	for _, w := range want {
		i := slices.IndexFunc(left, func(f modeltest.File) bool {
			known := f.MediaType == (agent.Attachment{Data: f.Data}).MediaType()
			return known && (bytes.Equal(f.Data, w.Data) || samePicture(f.Data, w.Data))
		})
		switch {
		case i < 0:
			return fmt.Errorf("%s (%s) is not among the files that the model got: %s", w.Name, w.MediaType(), listed(r.Files()))
		case r.Count(w.Name) == 0:
			return fmt.Errorf("the model did not get the name %s", w.Name)
		}
		left = slices.Delete(slices.Clone(left), i, i+1)
	}
	if len(left) > 0 {
		return fmt.Errorf("the model got more files: %s", listed(left))
	}
	return nil
}

// listed returns the types and sizes of files.
func listed(files []modeltest.File) string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = fmt.Sprintf("%s of %d bytes", f.MediaType, len(f.Data))
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// samePicture reports whether two images have the same pixels: some CLIs change the format.
func samePicture(a, b []byte) bool {
	one, _, err := image.Decode(bytes.NewReader(a))
	two, _, failed := image.Decode(bytes.NewReader(b))
	if err != nil || failed != nil || one.Bounds() != two.Bounds() {
		return false
	}
	for y := one.Bounds().Min.Y; y < one.Bounds().Max.Y; y++ {
		for x := one.Bounds().Min.X; x < one.Bounds().Max.X; x++ {
			if color.RGBA64Model.Convert(one.At(x, y)) != color.RGBA64Model.Convert(two.At(x, y)) {
				return false
			}
		}
	}
	return true
}

// attachRefused checks that each file that the runtime does not support is refused.
func attachRefused(t *trial) error {
	if err := t.start(modeltest.Always(says("got it")), nil); err != nil {
		return err
	}
	for _, file := range sampled(use(&t.runtime).Options.Attachments, false) {
		req := agent.Request{Prompt: "what is in it?", Attachments: []agent.Attachment{file}}
		o := outcome{}
		if t.runtime.Run.Command == nil { // the file of the first message
			var s *session.Session
			if s, o.err = t.open(req, new(approvals).answer); o.err == nil {
				s.Stop(context.WithoutCancel(t.ctx), "the check is over")
			}
		} else {
			o = t.run(t.ctx, req)
		}
		if err := t.wasRefused(o); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return nil
}

// sessionAttach checks that text and a file of each type that sessions support arrive with
// a later message of a session.
func sessionAttach(t *trial) error {
	script := func(r *modeltest.Request) modeltest.Reply { return says("got it") }
	if err := t.start(script, nil); err != nil {
		return err
	}
	takes := t.runtime.Session.Options.Attachments
	s, err := t.open(agent.Request{}, new(approvals).answer)
	if err != nil {
		return err
	}
	defer s.Stop(context.WithoutCancel(t.ctx), "the check is over")
	if err := t.say(s, "hello", "got it"); err != nil {
		return err
	}
	for _, file := range sampled(takes, false) {
		_, err := s.Send(session.Message{Text: "hello", Attachments: []agent.Attachment{file}}).Wait(t.ctx)
		if !errors.Is(err, agent.ErrUsage) {
			return fmt.Errorf("the turn with %s ended with %s instead of a usage error", file.Name, describe(err))
		}
	}
	const question = "what is in them?"
	files := sampled(takes, true)
	message := session.Message{Text: question, Attachments: append([]agent.Attachment{notes()}, files...)}
	if err := t.hear(s.Send(message), question, "got it"); err != nil {
		return err
	}
	list := t.model.ModelRequests()
	r := list[len(list)-1]
	want := agent.AttachmentText(message.Attachments) + question
	if got := strings.Join(r.Texts("user"), "\n"); !strings.Contains(got, want) {
		return fmt.Errorf("the model got %s, which is not %s", quote(t.lastPrompt(r)), quote(want))
	}
	return gotFiles(r, files)
}
