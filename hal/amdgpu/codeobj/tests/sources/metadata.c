// Prints the contents of a code object as read by AMD's code object manager: each kernel with its
// register counts and scratch size, and each symbol with its address and size.
#if __has_include(<amd_comgr/amd_comgr.h>)
#include <amd_comgr/amd_comgr.h>
#else
#include <amd_comgr.h>
#endif
#include <stdio.h>
#include <stdlib.h>

static void check(amd_comgr_status_t status, const char *what) {
  if (status == AMD_COMGR_STATUS_SUCCESS)
    return;
  const char *reason = "";
  amd_comgr_status_string(status, &reason);
  fprintf(stderr, "%s: %s\n", what, reason);
  exit(1);
}

static void print(amd_comgr_metadata_node_t map, const char *key) {
  amd_comgr_metadata_node_t node;
  size_t size = 0;
  char text[256] = "";
  check(amd_comgr_metadata_lookup(map, key, &node), key);
  check(amd_comgr_get_metadata_string(node, &size, NULL), key);
  if (size <= sizeof text)
    check(amd_comgr_get_metadata_string(node, &size, text), key);
  printf(" %s", text);
}

static amd_comgr_status_t symbol(amd_comgr_symbol_t symbol, void *unused) {
  char name[256] = "";
  uint64_t size, value;
  (void)unused;
  check(amd_comgr_symbol_get_info(symbol, AMD_COMGR_SYMBOL_INFO_NAME, name), "name");
  check(amd_comgr_symbol_get_info(symbol, AMD_COMGR_SYMBOL_INFO_SIZE, &size), "size");
  check(amd_comgr_symbol_get_info(symbol, AMD_COMGR_SYMBOL_INFO_VALUE, &value), "value");
  printf("symbol %s %llu %llu\n", name, (unsigned long long)value, (unsigned long long)size);
  return AMD_COMGR_STATUS_SUCCESS;
}

int main(int count, char **arguments) {
  static char bytes[1 << 20];
  FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
  size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  amd_comgr_data_t data;
  amd_comgr_metadata_node_t root, kernels, kernel;
  check(amd_comgr_create_data(AMD_COMGR_DATA_KIND_EXECUTABLE, &data), "data");
  check(amd_comgr_set_data(data, size, bytes), "contents");
  check(amd_comgr_get_data_metadata(data, &root), "metadata");
  check(amd_comgr_metadata_lookup(root, "amdhsa.kernels", &kernels), "kernels");
  check(amd_comgr_get_metadata_list_size(kernels, &size), "list");
  for (size_t i = 0; i < size; i++) {
    check(amd_comgr_index_list_metadata(kernels, i, &kernel), "kernel");
    printf("kernel");
    print(kernel, ".name");
    print(kernel, ".vgpr_count");
    print(kernel, ".sgpr_count");
    print(kernel, ".private_segment_fixed_size");
    printf("\n");
  }
  check(amd_comgr_iterate_symbols(data, symbol, NULL), "symbols");
  return 0;
}
