// Continues a text by greedy decoding and writes the logits:
//
//     generate MODEL.gguf TEXT TOKENS LOGITS.f32
//
// Prints the continuation. LOGITS.f32 has a row of float32 for each token, with one number per word of the
// vocabulary. All layers run on the GPU if there is one. Each operation of llama.cpp's graph is computed separately in
// a ROCTX range with its name ("ffn_gate-0": layer 0), so that recorded dispatches are labelled with operations.
//
//     c++ -O2 generate.cpp -o generate -lllama -lggml -lggml-base -ldl

#include <dlfcn.h>
#include <llama.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Push = int (*)(const char *);
using Pop = int (*)();
Push push = nullptr;
Pop pop = nullptr;

[[noreturn]] void fail(const char *what) {
    fprintf(stderr, "generate: %s\n", what);
    exit(2);
}

// Called before each operation to decide whether to compute it separately, and again after it.
bool within_range(ggml_tensor *tensor, bool before, void *) {
    if (before)
        push(tensor->name);
    else
        pop();
    return true;
}

void only_errors(ggml_log_level level, const char *text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

}  // namespace

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: %s MODEL.gguf TEXT TOKENS LOGITS.f32\n", arguments[0]);
        return 2;
    }
    const std::string text = arguments[2];
    const int wanted = atoi(arguments[3]);
    push = reinterpret_cast<Push>(dlsym(RTLD_DEFAULT, "roctxRangePushA"));
    pop = reinterpret_cast<Pop>(dlsym(RTLD_DEFAULT, "roctxRangePop"));

    llama_log_set(only_errors, nullptr);
    ggml_backend_load_all();
    llama_model_params model_parameters = llama_model_default_params();
    model_parameters.n_gpu_layers = 99;
    llama_model *model = llama_model_load_from_file(arguments[1], model_parameters);
    if (model == nullptr)
        fail("the model cannot be loaded");
    const llama_vocab *vocabulary = llama_model_get_vocab(model);
    const int size = llama_vocab_n_tokens(vocabulary);

    std::vector<llama_token> tokens(text.size() + 2);
    int length = llama_tokenize(vocabulary, text.data(), text.size(), tokens.data(), tokens.size(), false, false);
    if (length <= 0 || wanted <= 0)
        fail("TEXT and TOKENS must be a text and a number above zero");
    tokens.resize(length);

    llama_context_params context_parameters = llama_context_default_params();
    context_parameters.n_ctx = length + wanted;
    context_parameters.n_threads = context_parameters.n_threads_batch = 1;
    if (push != nullptr && pop != nullptr)
        context_parameters.cb_eval = within_range;
    llama_context *context = llama_init_from_model(model, context_parameters);
    if (context == nullptr)
        fail("no context for the model");

    FILE *file = fopen(arguments[4], "wb");
    if (file == nullptr)
        fail("the file of logits cannot be written");
    std::vector<llama_token> next = tokens;
    for (int i = 0; i < wanted; i++) {
        if (llama_decode(context, llama_batch_get_one(next.data(), next.size())) != 0)
            fail("the model cannot be evaluated");
        const float *logits = llama_get_logits_ith(context, -1);
        if (fwrite(logits, sizeof *logits, size, file) != size_t(size))
            fail("the file of logits cannot be written");
        next = {llama_token(std::max_element(logits, logits + size) - logits)};
        char piece[64];
        int bytes = llama_token_to_piece(vocabulary, next[0], piece, sizeof piece, 0, true);
        fwrite(piece, 1, std::max(bytes, 0), stdout);
    }
    putchar('\n');
    if (fclose(file) != 0)
        fail("the file of logits cannot be written");
    llama_free(context);
    llama_model_free(model);
}
