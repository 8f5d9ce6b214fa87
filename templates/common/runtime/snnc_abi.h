/* The C interface of every program that snnc emits: a shared library; each call of snnc_open creates a session.
 *
 * Functions return 0 (or a pointer) on success, otherwise -1 (or NULL); snnc_last_error then returns the message.
 * No C++ exception leaves the library. A session must not be used by two threads at the same time.
 *
 * Tensors have names (x0, c0_weight, labels, y0_record …), which project.json explains. Their data are dense, row-major, and in
 * the orientation of the model: inputs and records [steps][batch][n], dense weights [outputs][inputs]. Callers need not know how
 * the target stores them (event lists, tiles, columns).
 */
#ifndef SNNC_ABI_H
#define SNNC_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SNNC_ABI_VERSION 2
#define SNNC_MAX_RANK 8

/* The purpose of a tensor. */
enum snnc_role {
  SNNC_INPUT = 0,     /* set before snnc_run or snnc_train_step */
  SNNC_RECORD = 1,    /* an output at every step, after snnc_run; after snnc_train_step if the program keeps it */
  SNNC_PARAMETER = 2, /* can be read and set */
  SNNC_GRADIENT = 3,  /* gradient of the batch's mean loss, times the loss scale if there is one; after snnc_train_step */
  SNNC_STATE = 4,     /* initial states; can be read and set */
  SNNC_LABEL = 5,     /* class indices, set before snnc_train_step */
  SNNC_SETTING = 6,   /* for example the learning rate; can be read and set */
  SNNC_COUNTER = 7,   /* counted since snnc_open; setting one resets it */
  SNNC_RESULT = 8,    /* loss of the last snnc_train_step */
  SNNC_MOMENT = 9,    /* state of the optimiser; can be read and set */
  SNNC_NEXT = 10 /* x0_next, labels_next …: inputs of the call after the next one, if the program can copy them during the next call. They
                         are set before snnc_run or snnc_train_step; after that call they are the inputs, as if they had been set then. The
                         memory from which they were set must not change before that call returns */
};

enum snnc_type { SNNC_FLOAT32 = 0, SNNC_INT32 = 1 };

typedef struct snnc_tensor {
  const char *name; /* valid until snnc_close */
  int32_t type;
  int32_t role;
  int32_t rank;
  uint64_t shape[SNNC_MAX_RANK];
} snnc_tensor;

typedef struct snnc_session snnc_session;

/* SNNC_ABI_VERSION of the library. */
int32_t snnc_abi_version(void);

/* Opens the project in `folder`, with the weights in its file weights.safetensors; returns NULL on failure. */
snnc_session *snnc_open(const char *folder);

/* Frees the session, which may be NULL. */
void snnc_close(snnc_session *session);

/* The number of tensors, and the description of tensor `index`. */
int32_t snnc_tensor_count(snnc_session *session);
int32_t snnc_tensor_info(snnc_session *session, int32_t index, snnc_tensor *info);

/* Copies a whole tensor in or out; `bytes` must equal its size. */
int32_t snnc_set_tensor(snnc_session *session, const char *name, const void *data, uint64_t bytes);
int32_t snnc_get_tensor(snnc_session *session, const char *name, void *data, uint64_t bytes);

/* Sets an input [steps][batch][n] to 1 at events and to 0 elsewhere. Row r = step * batch + sample contains the neurons ids[begin[r]] to
 * ids[begin[r + 1] - 1], distinct and ascending; `begin` has steps * batch + 1 elements. Programs that accept only dense inputs fail. */
int32_t snnc_set_events(snnc_session *session, const char *name, const uint64_t *begin, uint64_t rows, const uint32_t *ids, uint64_t count);

/* Runs the inputs forward and fills the records. */
int32_t snnc_run(snnc_session *session);

/* Runs forward, loss, backward and update; stores the loss of the batch in *loss unless `loss` is NULL. */
int32_t snnc_train_step(snnc_session *session, float *loss);

/* Returns counters and times of the session as JSON, valid until the next call on this session; NULL on failure. */
const char *snnc_profile(snnc_session *session);

/* Writes the current parameters to a safetensors file, completely or not at all. */
int32_t snnc_save(snnc_session *session, const char *path);

/* The message of the last failure on this thread, or "". */
const char *snnc_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
