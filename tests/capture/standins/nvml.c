/* A stand-in for libnvidia-ml.so.1: two devices that answer, refuse field by field, and can be lost mid-run.

   The file named by NVML_STANDIN is read at every call. A line "refuse FUNCTION" makes that function answer
   NVML_ERROR_NOT_SUPPORTED, "lost N" makes every function on device N answer NVML_ERROR_GPU_IS_LOST.

   NVML_STANDIN_SETTING is "mig" (device 0 is divided into GPU instances 1 and 2 at the places 0 and 2, and its counters
   answer), "mig-ampere" (the same without counters), "vgpu" or "wsl". What is refused then follows nvml.h: a divided GPU
   and its instances have no utilization; power, temperature, clocks and rates are no instance's; a virtual GPU's guest
   has none of the board's sensors; under WSL unknown errors, and a memory of all ones for what Windows keeps. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, GPU_IS_LOST = 15, UNKNOWN = 999 };
typedef struct { int number, gpu_instance; } device_t;
static device_t devices[2] = {{0, 0}, {1, 0}};
static device_t instances[2] = {{0, 1}, {0, 2}};
static unsigned long long counted_kib = 1000;

static int has_line(const char *wanted) {
  const char *path = getenv("NVML_STANDIN");
  FILE *file = path ? fopen(path, "r") : NULL;
  char line[256];
  int found = 0;
  while (file && !found && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\r\n")] = 0;
    found = !strcmp(line, wanted);
  }
  if (file) fclose(file);
  return found;
}

static int is_set(const char *setting) {
  const char *now = getenv("NVML_STANDIN_SETTING");
  return now && !strncmp(now, setting, strlen(setting));
}

/* Whether the setting refuses a function that a board of its own would answer. */
static int refused_by_setting(const char *function, device_t *device) {
  static const char *of_board[] = {"PowerUsage", "EnforcedPowerLimit", "Temperature", "ClockInfo", "PcieThroughput",
                                   "FieldValues"};
  int is_board = 0;
  for (unsigned i = 0; i < sizeof of_board / sizeof *of_board; i++) is_board |= strstr(function, of_board[i]) != NULL;
  if (is_set("vgpu") && is_board) return NOT_SUPPORTED;
  if (is_set("wsl") && strstr(function, "PcieThroughput")) return UNKNOWN;
  if (is_set("wsl") && strstr(function, "FieldValues")) return NOT_SUPPORTED;
  if (is_set("mig") && !device->number && strstr(function, "UtilizationRates")) return NOT_SUPPORTED;
  return device->gpu_instance && is_board ? NOT_SUPPORTED : SUCCESS;
}

static int refusal(const char *function, device_t *device) {
  char wanted[256];
  snprintf(wanted, sizeof wanted, "lost %d", device->number);
  if (has_line(wanted)) return GPU_IS_LOST;
  snprintf(wanted, sizeof wanted, "refuse %s", function);
  return has_line(wanted) ? NOT_SUPPORTED : refused_by_setting(function, device);
}

#define ANSWER(assignment) \
  int refused = refusal(__func__, device); \
  if (!refused) { assignment; } \
  return refused

int nvmlInitWithFlags(unsigned flags) { (void)flags; return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t **device) { *device = &devices[index]; return SUCCESS; }
int nvmlDeviceGetUUID(device_t *device, char *uuid, unsigned length) {
  if (device->gpu_instance) snprintf(uuid, length, "MIG-%d0000000", device->gpu_instance);
  else snprintf(uuid, length, "GPU-%d2345678", device->number);
  return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(device_t *device, unsigned *rates) {
  ANSWER(rates[0] = 75 + device->number; rates[1] = 40);
}
int nvmlDeviceGetMemoryInfo(device_t *device, unsigned long long *memory) {
  unsigned long long total = device->gpu_instance ? 10000000000ULL : 80000000000ULL;
  unsigned long long used = device->gpu_instance ? device->gpu_instance * 3000000000ULL : 20000000000ULL;
  ANSWER(memory[0] = total; memory[1] = total - used; memory[2] = is_set("wsl-hidden") ? ~0ULL : used);
}
int nvmlDeviceGetVirtualizationMode(device_t *device, unsigned long long *mode) {
  ANSWER(*mode = is_set("vgpu") ? 2 : 0);
}
int nvmlDeviceGetMigMode(device_t *device, unsigned *now, unsigned *next) {
  if (!is_set("mig")) return NOT_SUPPORTED;
  ANSWER(*now = *next = !device->number);
}
int nvmlDeviceGetMaxMigDeviceCount(device_t *device, unsigned *count) { ANSWER(*count = device->number ? 0 : 7); }
int nvmlDeviceGetMigDeviceHandleByIndex(device_t *device, unsigned place, device_t **instance) {
  if (device->number || (place != 0 && place != 2)) return NOT_FOUND;
  *instance = &instances[place / 2];
  return SUCCESS;
}
int nvmlDeviceGetGpuInstanceId(device_t *device, unsigned *id) {
  ANSWER(*id = (unsigned)device->gpu_instance);
}
int nvmlDeviceGetComputeInstanceId(device_t *device, unsigned *id) { ANSWER(*id = 0); }
int nvmlDeviceGetPowerUsage(device_t *device, unsigned *milliwatts) { ANSWER(*milliwatts = 312500); }
int nvmlDeviceGetEnforcedPowerLimit(device_t *device, unsigned *milliwatts) { ANSWER(*milliwatts = 700000); }
int nvmlDeviceGetTemperature(device_t *device, int sensor, unsigned *degrees) { (void)sensor; ANSWER(*degrees = 61); }
int nvmlDeviceGetClockInfo(device_t *device, int type, unsigned *mhz) { ANSWER(*mhz = type == 1 ? 1980 : 2619); }
int nvmlDeviceGetPcieThroughput(device_t *device, int counter, unsigned *kib) { ANSWER(*kib = counter ? 2000 : 1000); }

typedef struct {
  uint32_t field, scope;
  int64_t timestamp, latency;
  int type, status;
  unsigned long long value;
} field_t;

int nvmlDeviceGetFieldValues(device_t *device, int count, field_t *fields) {
  int refused = refusal(__func__, device);
  for (int i = 0; i < count; i++) {
    fields[i].status = refused;
    fields[i].value = counted_kib += 1000000;
  }
  return refused == GPU_IS_LOST ? refused : SUCCESS;
}

/* GPM: a sample keeps the instance and how often samples were taken; a metric is worked out between two of them. */
typedef struct { int gpu_instance, is_filled; } sample_t;
typedef struct { unsigned id; int status; double value; const char *names[3]; } metric_t;
typedef struct { unsigned version, count; sample_t *first, *second; metric_t metrics[1]; } metrics_t;

int nvmlGpmQueryDeviceSupport(device_t *device, unsigned *support) {
  ANSWER(support[1] = !is_set("mig-ampere"));
}
int nvmlGpmSampleAlloc(sample_t **sample) {
  *sample = calloc(1, sizeof **sample);
  return SUCCESS;
}
int nvmlGpmSampleFree(sample_t *sample) { free(sample); return SUCCESS; }
int nvmlGpmMigSampleGet(device_t *device, unsigned gpu_instance, sample_t *sample) {
  ANSWER(sample->gpu_instance = (int)gpu_instance; sample->is_filled = 1);
}
/* Instance 1 is busy for 41 %, instance 2 for 42 %, a tenth of which is memory traffic; SMs (metric 2) half of it. */
int nvmlGpmMetricsGet(metrics_t *asked) {
  if (!asked->first->is_filled || !asked->second->is_filled) return UNKNOWN;
  metric_t *metric = asked->metrics;
  double busy = 40 + asked->second->gpu_instance;
  metric->status = SUCCESS;
  metric->value = metric->id == 1 ? busy : metric->id == 2 ? busy / 2 : busy / 10;
  return SUCCESS;
}
