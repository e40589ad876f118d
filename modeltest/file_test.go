package modeltest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/modeltest"
)

// TestFiles reads the images and files of each provider's form, next to texts.
func TestFiles(t *testing.T) {
	t.Parallel()
	png, pdf := modeltest.File{MediaType: "image/png", Data: []byte("abc")}, modeltest.File{MediaType: "application/pdf", Data: []byte("def")}
	bodies := map[string]string{
		"openai": `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"},` +
			`{"type":"input_image","image_url":"data:image/png;base64,YWJj"},{"type":"input_file","filename":"a","file_data":"data:application/pdf;base64,ZGVm"},` +
			`{"type":"input_image","image_url":"https://a.example/b.png"}]}]}`,
		"openai-chat": `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},` +
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}},{"type":"file","file":{"filename":"a","file_data":"data:application/pdf;base64,ZGVm"}}]}]}`,
		"anthropic": `{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YWJj"}},` +
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"ZGVm"}},{"type":"text","text":"hi"}]}]}`,
		"gemini": `{"contents":[{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"YWJj"}},` +
			`{"inlineData":{"mimeType":"application/pdf","data":"ZGVm"}}]}]}`,
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, err := modeltest.Start(modeltest.Always(modeltest.Reply{modeltest.Text{"ok"}}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(srv.Close)
			base := form.url(srv)[len(srv.URL()):]
			if name == "anthropic" || name == "gemini" {
				base = ""
			}
			post(t, srv, base+form.wholePath, bodies[name])
			list := srv.ModelRequests()
			if len(list) != 1 {
				t.Fatalf("%d requests", len(list))
			}
			if diff := cmp.Diff([]modeltest.File{png, pdf}, list[0].Files()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"hi"}, list[0].Texts("user")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
